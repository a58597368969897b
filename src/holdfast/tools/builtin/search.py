"""Runs ripgrep for the tools that look for files.

What must stay true: it sees exactly the folder or file that was judged, and nothing of git's or of Holdfast's
own below it; it follows no link and takes no settings of the user's; it ends after a bound of time, when
enough was found, and with its call.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import ByteReceiveStream

from holdfast.errors import HoldfastError
from holdfast.location import ripgrep
from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.location.project import is_utf8
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.output import ToolFailure

LIMIT: Final = 100
"""How many finds an answer has at most."""
SEARCH_S: Final = 30.0
PATTERN_CHARS_MAX: Final = 4_096
ERROR_CHARS_MAX: Final = 600

_PIECE_BYTES: Final = 1 << 18
_RECORD_BYTES_MAX: Final = 1 << 20
_FAILED: Final = 2
_COMPLAINT: Final = b"rg: "
HIDDEN: Final = ("--hidden", "--glob=!.git")
"""Hidden files too, but nothing of git's. An exclusion costs time at each file: where hidden files are left
out by themselves, none is given.
"""
_SPECIAL: Final = re.compile(r"([\\*?\[\]{}!#])")

LATE: Final = (
    f"(The search took longer than {SEARCH_S:.0f} s and was ended. Use a narrower `path`, or a simpler "
    "pattern.)"
)

Take = Callable[[list[bytes]], Awaitable[bool]]
"""Takes what was printed, whole records; True when it is enough."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a search ended. `whole`: everything was looked at."""

    whole: bool
    late: bool = False


def check_pattern(pattern: str, what: str) -> None:
    """Refuse a pattern that no program could be given."""
    if not pattern or "\0" in pattern or not is_utf8(pattern):
        raise ToolFailure(f"The {what} is empty, or holds signs that no file can. Write it again.")
    if len(pattern) > PATTERN_CHARS_MAX:
        raise ToolFailure(
            f"The {what} has {len(pattern)} characters; at most {PATTERN_CHARS_MAX} are taken. Shorten it."
        )


async def run(
    context: ToolContext,
    filesystem: Filesystem,
    target: Resolved,
    options: Sequence[str],
    take: Take,
    *,
    separator: bytes,
) -> Ran:
    """Search a judged folder or file; what ripgrep has to say against the pattern fails the call."""
    program = ripgrep.program()
    if program is None:
        raise ToolFailure("ripgrep (`rg`) is not installed here, so nothing can be searched. Tell the user.")
    with ExitStack() as stack:
        try:
            path = await anyio.to_thread.run_sync(stack.enter_context, filesystem.pinned(target))
        except HoldfastError as error:
            raise ToolFailure(f"This path cannot be searched: {error}.") from error
        folder = path if target.kind == "folder" else None
        excluded = () if folder is None else map(_excluded, filesystem.closed_below(target))
        # Above the top of a checkout git looks for no rules either; below it they count.
        rules = ["--no-ignore-parent"] if target.real == filesystem.top else []
        command = [program, "--no-config", "--no-messages", "--no-follow", *rules, *options, *excluded, "--"]
        command.append(str(path) if folder is None else "./")
        async with context.spawn(command, cwd=folder or Path("/"), noted=False) as process:
            assert process.stdout is not None
            reading = _Reading(process.stdout, separator, take)
            with anyio.move_on_after(SEARCH_S) as bound:
                await reading.read()
            if bound.cancelled_caught or reading.enough:
                return Ran(whole=False, late=bound.cancelled_caught)
            if await process.wait() == _FAILED and reading.said.startswith(_COMPLAINT):
                raise ToolFailure(_complaint(reading.said))
    return Ran(whole=True)


def _excluded(closed: Path) -> str:
    return "--glob=!/" + _SPECIAL.sub(r"\\\1", str(closed))


class _Reading:
    """Divides what a program prints into records. `said` is how it began: perhaps with a complaint."""

    def __init__(self, stream: ByteReceiveStream, separator: bytes, take: Take) -> None:
        self._stream = stream
        self._separator = separator
        self._take = take
        self.enough = False
        self.said = b""

    async def read(self) -> None:
        """Read to the end, or until enough was found."""
        rest = b""
        while not self.enough:
            try:
                piece = await self._stream.receive(_PIECE_BYTES)
            except anyio.EndOfStream:
                return
            if len(self.said) < ERROR_CHARS_MAX:
                self.said += piece
            *records, rest = (rest + piece).split(self._separator)
            self.enough = len(rest) > _RECORD_BYTES_MAX or (bool(records) and await self._take(records))


def _complaint(said: bytes) -> str:
    """What ripgrep has against a pattern, in words for the model."""
    text = said.decode("utf-8", "replace").strip().removeprefix("rg: ")
    return (
        f"The pattern cannot be used: {text[:ERROR_CHARS_MAX]}\n"
        "Write it again; a sign that is meant as it stands needs a backslash before it."
    )
