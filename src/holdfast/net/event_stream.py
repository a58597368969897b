"""Reads `text/event-stream`. Bytes in, events out; any chunking gives the same events.

Follows the WHATWG rules: a line ends with LF, CR or CRLF (also when CR and LF come in two chunks), a leading
byte order mark and comments are skipped, `data` lines are joined by newline, an event without `data` is none.
`id` and `retry` are ignored: a stream of a model is not resumed.

One departure: at the end of the stream an event that lacks only its blank line is given, because servers
forget it. A line that lacks its own end is dropped as cut, unless the reader asks for it (`whole`): only who
decodes it can tell.

What must stay true: memory is bounded. `event_bytes_max` is checked after each chunk, so an event may exceed
it by one chunk at most.
"""

import msgspec

from holdfast.errors import ProviderError

EVENT_BYTES_MAX = 16 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


class ServerEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its name (empty when the stream gives none) and its data, lines joined by newline."""

    event: str
    data: bytes


class EventStreamParser:
    """Parses one stream. `feed` each chunk, then `close`."""

    def __init__(self, *, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._event_bytes_max = event_bytes_max
        self._line: list[bytes] = []  # the pieces of a line that has not ended
        self._line_bytes = 0
        self._event = ""
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._after_cr = False
        self._at_start = True
        self._too_long = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that this chunk completes."""
        if self._too_long:
            raise self._oversized()
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        events: list[ServerEvent] = []
        if lines:
            if self._line:
                lines[0] = b"".join((*self._line, lines[0]))
                self._line.clear()
                self._line_bytes = 0
            self._read(lines, events)
        if rest:
            self._line.append(rest)
            self._line_bytes += len(rest)
        if self._line_bytes + self._data_bytes > self._event_bytes_max:
            self._too_long = True
            if not events:
                raise self._oversized()
        return events

    @property
    def unended(self) -> bool:
        """Whether the last line lacks its end."""
        return bool(self._line)

    def close(self, *, whole: bool = False) -> list[ServerEvent]:
        """The event that lacks only its blank line, if any. `whole`: a line without its end counts."""
        if self._too_long:
            raise self._oversized()
        events: list[ServerEvent] = []
        self._read([b"".join(self._line), b""] if whole and self._line else [b""], events)
        self._line.clear()
        self._line_bytes = 0
        return events

    def _read(self, lines: list[bytes], events: list[ServerEvent]) -> None:
        if self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(_BOM)
        data = self._data
        for line in lines:
            if not line:
                if data:
                    events.append(ServerEvent(self._event, data[0] if len(data) == 1 else b"\n".join(data)))
                    data.clear()
                    self._data_bytes = 0
                self._event = ""
            elif line[:6] == b"data: ":
                data.append(line[6:])
                self._data_bytes += len(line)
            else:
                self._field(line)

    def _field(self, line: bytes) -> None:
        """Any line but a blank one and the usual form of `data`. A comment is a line with an empty name."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value)
            self._data_bytes += len(line) + 1

    def _oversized(self) -> ProviderError:
        return ProviderError(
            f"the provider sent an event of more than {self._event_bytes_max:,} bytes; the stream was left",
            kind="malformed-stream",
        )
