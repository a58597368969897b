"""What git lists about a worktree and between two trees, read into values. Pure."""

import os
from collections.abc import Iterator
from typing import Literal

import msgspec

Status = Literal["added", "deleted", "modified"]

_STATUS: dict[str, Status] = {"A": "added", "D": "deleted", "M": "modified", "T": "modified"}


class Listed(msgspec.Struct, frozen=True):
    """The paths that a snapshot has to look at: changed since the last one, gone, and new ones."""

    known: tuple[str, ...]
    new: tuple[str, ...]
    repositories: tuple[str, ...]
    """Folders that are repositories of their own, and of which nothing is known yet."""


class TreeChange(msgspec.Struct, frozen=True, kw_only=True):
    """One path that differs between two trees. Modes and ids are git's; 0 where the path is not there."""

    path: str
    status: Status
    old_mode: str
    new_mode: str
    old: str
    new: str


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One path that differs, as a diff tells it."""

    path: str
    old_path: str | None
    status: Status
    is_other_kind: bool
    """Whether a file has become a link, or the other way round."""


Counts = dict[str, tuple[int, int] | tuple[None, None]]
"""Lines added and removed, by path; None for a binary file."""


def summary(output: bytes) -> tuple[list[Changed], Counts]:
    """`diff-tree -z --raw --numstat`: the paths, and their counts."""
    paths: list[Changed] = []
    counts: Counts = {}
    fields = iter(output.split(b"\0"))
    for field in fields:
        if field.startswith(b":"):
            status = chr(field.split(b" ")[4][0])
            path = os.fsdecode(next(fields))
            new = os.fsdecode(next(fields)) if status in "RC" else None
            paths.append(
                Changed(
                    path=new or path,
                    old_path=path if new else None,
                    status=_STATUS.get(status, "modified"),
                    is_other_kind=status == "T",
                )
            )
        elif field:
            added, removed, path_of = field.split(b"\t", 2)
            if not path_of:  # A rename has both names, each in a field of its own.
                next(fields)
                path_of = next(fields)
            known = added != b"-"
            counts[os.fsdecode(path_of)] = (int(added), int(removed)) if known else (None, None)
    return paths, counts


def listed(output: bytes) -> Listed:
    """`ls-files -z -t -m -o -d`."""
    known, new, repositories = [], [], []
    for line in filter(None, output.split(b"\0")):
        tag, path = chr(line[0]), os.fsdecode(line[2:])
        if tag != "?":
            known.append(path)
        elif path.endswith("/"):
            repositories.append(path)
        else:
            new.append(path)
    return Listed(tuple(dict.fromkeys(known)), tuple(new), tuple(repositories))


def changes(output: bytes) -> Iterator[TreeChange]:
    """`diff-tree -r -z --no-renames --raw`, without abbreviated ids."""
    fields = iter(output.split(b"\0"))
    for head in fields:
        if not head:
            return
        old_mode, new_mode, old, new, status = head[1:].decode("ascii").split(" ")
        yield TreeChange(
            path=os.fsdecode(next(fields)),
            status=_STATUS[status[0]],
            old_mode=old_mode,
            new_mode=new_mode,
            old=old,
            new=new,
        )
