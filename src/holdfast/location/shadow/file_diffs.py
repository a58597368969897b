"""What differs between two trees, file by file, as git shows it."""

from collections.abc import Iterator
from typing import Final

import msgspec

from holdfast.location.shadow import listing
from holdfast.location.shadow.listing import Status
from holdfast.location.shadow.repository import Shadow

CONTEXT: Final = 3
WHOLE: Final = 1_000_000
"""As context: the whole file."""
TEXT_MAX: Final = 2 << 20
"""A larger file is not shown as text."""
PATCH_CHARS_MAX: Final = 200_000
PATCHES_CHARS_MAX: Final = 2_000_000
"""All patches together; of files beyond that, numbers are all that is told."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One file. `patch` is git's text of it, header included, cut where it is long; a binary file has no
    counts.
    """

    path: str
    old_path: str | None = None
    """What a file that was renamed was called before."""
    status: Status
    additions: int = 0
    deletions: int = 0
    is_binary: bool = False
    patch: str = ""


def differences(
    shadow: Shadow,
    old: str,
    new: str,
    *,
    context: int = CONTEXT,
    renames: bool = False,
    chars_max: int | None = None,
) -> list[Difference]:
    """What differs between two trees. `chars_max` bounds the length of all patches together."""
    if old == new:
        return []
    output = shadow.diff(old, new, context=context, renames=renames, text_max=TEXT_MAX)
    summary, _, text = output.partition(b"\0\0")
    raw, counts = listing.summary(summary)
    sections = _sections(text.decode("utf-8", "replace"))
    found: list[Difference] = []
    room = PATCHES_CHARS_MAX if chars_max is None else chars_max
    for each in raw:
        additions, deletions = counts.get(each.path, (None, None))
        # A file that became a link, or the other way round, is shown as one that goes and one that comes.
        patch = next(sections, "") + (next(sections, "") if each.is_other_kind else "")
        kept = _cut(patch, min(room, PATCH_CHARS_MAX))
        room -= len(kept)
        found.append(
            Difference(
                path=each.path,
                old_path=each.old_path,
                status=each.status,
                additions=additions or 0,
                deletions=deletions or 0,
                is_binary=additions is None,
                patch=kept,
            )
        )
    return found


def _sections(text: str) -> Iterator[str]:
    """The patches of single files: no line of a content begins like their first one."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("diff --git ") and lines:
            yield "\n".join(lines) + "\n"
            lines = []
        lines.append(line)
    yield "\n".join(lines)


def _cut(patch: str, room: int) -> str:
    if len(patch) <= room:
        return patch
    if room <= 0:
        return ""
    lines = patch[:room].split("\n")[:-1]
    left = patch.count("\n", sum(len(line) + 1 for line in lines))
    return "\n".join([*lines, f"(… {left} more lines of the diff)", ""])
