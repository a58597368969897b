"""Makes the Model Tool Output: what of a tool's text is recorded and shown to the model.

One settlement has one limit, lines or UTF-8 bytes, whichever is reached first; the same for every provider.
Longer text keeps its beginning and its end around a marker, and its whole goes to a Managed Tool Output File.
What must stay true: the result is within both limits and valid UTF-8, with no code point split; bounding it
again changes nothing; a file that cannot be written makes the result lossy, never a failure; the structured
value and the paths that the tool itself brought are as they were.
"""

import re
from collections.abc import Awaitable, Callable

import anyio.to_thread
import msgspec

from holdfast.schema.wire import JsonMap
from holdfast.toolkit.output import ToolOutput
from holdfast.tools.picture import PictureLimits

# From here on, measuring a text would be felt by everything else on the event loop.
LARGE_CHARS = 1 << 20

_SURROGATE = re.compile("[\ud800-\udfff]")


class OutputLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one settlement may hold: lines and bytes of text, and how large each picture is."""

    lines_max: int = 2000
    bytes_max: int = 51_200
    pictures: PictureLimits = PictureLimits()


class Bounded(msgspec.Struct, frozen=True, kw_only=True):
    """A Model Tool Output. `lossy`: something was left out that is kept nowhere."""

    text: str
    paths: tuple[str, ...] = ()
    truncated: bool = False
    lossy: bool = False

    def metadata(self) -> JsonMap:
        """What the record of the call keeps of it."""
        kept: JsonMap = {"truncated": self.truncated}
        if self.paths:
            kept |= {"outputPath": self.paths[0], "outputPaths": list(self.paths)}
        return kept | ({"lossy": True} if self.lossy else {})


async def bound(
    output: ToolOutput, limits: OutputLimits, keep: Callable[[str], Awaitable[str | None]]
) -> Bounded:
    """Bound what a tool answered. `keep` stores a complete text and answers its path, or None."""
    text = output.text
    if not text and output.structured is not None:
        text = await anyio.to_thread.run_sync(pretty, output.structured)
    if len(text) < LARGE_CHARS:
        text, fits = _measured(text, limits)
    else:
        text, fits = await anyio.to_thread.run_sync(_measured, text, limits)
    if fits:
        # A tool that pages its own output has reported by itself whether there is more.
        truncated = output.metadata.get("truncated") is True
        return Bounded(text=text, paths=output.paths, truncated=truncated, lossy=output.lossy)
    path = await keep(text)
    shown = (
        _cut(text, limits, path)
        if len(text) < LARGE_CHARS
        else await anyio.to_thread.run_sync(_cut, text, limits, path)
    )
    return Bounded(
        text=shown,
        paths=output.paths if path is None else (*output.paths, path),
        truncated=True,
        lossy=output.lossy or path is None,
    )


def pretty(structured: JsonMap) -> str:
    """A structured value as the model is shown it."""
    return msgspec.json.format(msgspec.json.encode(structured), indent=2).decode()


def _measured(text: str, limits: OutputLimits) -> tuple[str, bool]:
    """The text as it can be written down, and whether it may stay as it is."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        # A tool that decoded foreign bytes may leave halves of surrogate pairs, which no record can hold.
        text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
        size = len(text.encode())
    return text, size <= limits.bytes_max and _lines(text) <= limits.lines_max


def fits(text: str, limits: OutputLimits) -> bool:
    """Whether a text may stay as it is."""
    return len(text.encode()) <= limits.bytes_max and _lines(text) <= limits.lines_max


def tail(text: str, limits: OutputLimits) -> str:
    """The end of a text, within the limits."""
    return _tail(text, max(limits.bytes_max, 1), max(limits.lines_max, 1))


def _lines(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _cut(text: str, limits: OutputLimits, path: str | None) -> str:
    """The beginning and the end of a text that is too long, around a marker that says what is missing."""
    size = len(text.encode())
    # Room is made for the largest numbers that the marker could hold.
    room = limits.bytes_max - len(_marker(text.count("\n"), size, path).encode()) - 2
    lines = limits.lines_max - 1
    if room < 2 or lines < 2:
        return _tiny(_marker(text.count("\n"), size, path), path, limits)
    head = _head(text, room - room // 2, lines - lines // 2)
    tail = _tail(text, room // 2, lines // 2)
    missing = size - len(head.encode()) - len(tail.encode())
    # The lines of which nothing is left.
    gone = max(0, text.count("\n", len(head), len(text) - len(tail)) - 1)
    return f"{head}\n{_marker(gone, missing, path)}\n{tail}"


def _marker(lines: int, size: int, path: str | None) -> str:
    where = (
        "and they could not be kept"
        if path is None
        else f"and all that the tool returned is in {path}: search that file, or read it in parts"
    )
    counted = f"{lines} lines, " if lines else ""
    return f"[... {counted}{size} bytes are left out here, {where} ...]"


def _tiny(marker: str, path: str | None, limits: OutputLimits) -> str:
    """The marker alone; where even that does not fit, the path, or what there is room for."""
    if limits.lines_max < 1:
        return ""
    for each in (marker, path):
        if each is not None and len(each.encode()) <= limits.bytes_max:
            return each
    return _head(marker, max(limits.bytes_max, 0), 1)


def _head(text: str, bytes_max: int, lines_max: int) -> str:
    # No code point is shorter than a byte; what `ignore` drops is the one that the cut went through.
    start = text[:bytes_max].encode()[:bytes_max].decode("utf-8", "ignore")
    return "\n".join(start.split("\n", lines_max)[:lines_max])


def _tail(text: str, bytes_max: int, lines_max: int) -> str:
    end = text[-bytes_max:].encode()[-bytes_max:].decode("utf-8", "ignore")
    return "\n".join(end.rsplit("\n", lines_max)[-lines_max:])
