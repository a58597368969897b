"""The journal: what a commit changes, in one synced write, before the tree is touched.

One file of fixed place, written in place: its space is made once, so that a sync waits for bytes and not
for the file system's own records. A frame is a header line (generation, offset, length, checksum) and one
JSON object. Frames follow each other; the first one that is not whole ends them. Trimming begins the next
generation at the front. Which frames have reached the index is written there (`Mark`).
"""

import os
import zlib
from collections.abc import Iterator

import msgspec

from holdfast.schema import typed
from holdfast.store.files.disk import Disk
from holdfast.store.files.layout import JOURNAL

PATH = f"{JOURNAL}/log"
SIZE = 4 << 20
"""The space that is made at once; a longer journal is trimmed back to it."""
TRIM_BYTES = 2 << 20
"""A journal longer than this is trimmed by the commit that made it so."""
CLOSE_BYTES = 64 << 10
"""A journal longer than this is trimmed on close; a shorter one is not worth the wait for the disk."""

_HEADER = 44


class Mark(msgspec.Struct, frozen=True):
    """How far the index has come: everything before this offset of this generation. Written in this boot."""

    generation: int
    offset: int
    boot: str

    def text(self) -> str:
        """The form in which the index keeps it."""
        return f"{self.generation}:{self.offset}:{self.boot}"


def parse_mark(text: str) -> Mark:
    """The mark that a text stands for."""
    generation, offset, boot = text.split(":", 2)
    return Mark(int(generation), int(offset), boot)


class Entry(msgspec.Struct, frozen=True):
    """One commit: files as they shall be, and files that shall be gone with the session each belonged to."""

    files: dict[str, msgspec.Raw]
    gone: dict[str, str]


_entry = typed.decoder(Entry)


def payload(files: dict[str, bytes], gone: dict[str, str]) -> bytes:
    """An entry as JSON. Contents are JSON themselves and stand in it as they are, byte for byte."""
    pieces: list[bytes] = []
    for path, content in files.items():
        pieces += (b',"', path.encode(), b'":', content)
    if pieces:
        pieces[0] = b'"'
    return b'{"files":{%b},"gone":%b}' % (b"".join(pieces), msgspec.json.encode(gone) if gone else b"{}")


class Journal:
    """The journal file of one store, held open."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._fd = disk.open_log(PATH)

    def make(self) -> None:
        """Take the space, for a new store."""
        self._disk.write_at(self._fd, bytes(SIZE), 0)
        os.ftruncate(self._fd, SIZE)

    def write(self, generation: int, offset: int, body: bytes) -> int:
        """Add a frame and wait for the disk; answer where the next one begins."""
        lead = b"%08x %012x %08x " % (generation, offset, len(body))
        frame = b"%b%08x HF1\n%b\n" % (lead, zlib.crc32(body, zlib.crc32(lead)), body)
        self._disk.write_at(self._fd, frame, offset)
        return offset + len(frame)

    def is_begun(self, generation: int, offset: int) -> bool:
        """Whether a frame may stand here: the quick look before each piece of work."""
        return os.pread(self._fd, 21, offset) == b"%08x %012x" % (generation, offset)

    def generation(self) -> int | None:
        """The generation of the first frame, if there is a whole one."""
        found = self._frame(None, 0)
        return None if found is None else found[0]

    def frames(self, generation: int, offset: int) -> Iterator[tuple[int, Entry]]:
        """The whole frames from an offset on, each with the offset after it."""
        while (found := self._frame(generation, offset)) is not None:
            _, offset, entry = found
            yield offset, entry

    def _frame(self, generation: int | None, offset: int) -> tuple[int, int, Entry] | None:
        header = os.pread(self._fd, _HEADER, offset)
        if len(header) < _HEADER or header[-5:] != b" HF1\n":
            return None
        try:
            found, at, length, checksum = (int(word, 16) for word in header[:-5].split(b" "))
        except ValueError:
            return None
        if at != offset or generation not in (None, found):
            return None
        body = os.pread(self._fd, length, offset + _HEADER)
        if len(body) < length or zlib.crc32(body, zlib.crc32(header[:31])) != checksum:
            return None
        return found, offset + _HEADER + length + 1, _entry.decode(body)

    def paths(self, generation: int) -> Iterator[str]:
        """Every file that the generation's frames wrote."""
        for _, entry in self.frames(generation, 0):
            yield from entry.files

    def wipe(self, offset: int) -> None:
        """Remove the beginning of a frame that was not written to its end."""
        self._disk.write_at(self._fd, bytes(_HEADER), offset)

    def clear(self) -> None:
        """Forget every frame, durably. The caller has made sure that the disk has what they say."""
        if os.fstat(self._fd).st_size > SIZE:
            os.ftruncate(self._fd, SIZE)
        self._disk.write_at(self._fd, bytes(_HEADER), 0)

    def close(self) -> None:
        """Let the file go."""
        os.close(self._fd)
