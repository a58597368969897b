"""The pages of a database file with its log laid over it. Pure: bytes in, pages out, nothing is repaired."""

from holdfast.store.sqlite.salvage.frames import Bytes, is_page_size
from holdfast.store.sqlite.salvage.log import Log, read_log

HEADER = 100
PAGE_SIZE = 4096
"""What every store of ours has, where the file itself no longer says it."""
_MAGIC = b"SQLite format 3\0"
_LOCK_BYTE = 0x40000000
_FREE_MAX = 1 << 20


class Pages:
    """A database by its page numbers, which begin at 1; a page that is not there is None.

    Stores of ours reserve no space in their pages: what the header says of it is not looked at.
    """

    def __init__(self, data: Bytes, log: bytes = b"", size: int = 0) -> None:
        self._data = data
        self._log_data = log
        self._log = read_log(log)
        lead = data[:HEADER]
        sound = lead[:16] == _MAGIC
        declared = int.from_bytes(lead[16:18]) if sound else 0
        declared = 65536 if declared == 1 else declared
        self.has_log = self._log is not None
        if self._log is not None:
            self.size = self._log.page_size
        else:
            self.size = size or (declared if is_page_size(declared) else PAGE_SIZE)
        self.count = self._log.pages if self._log is not None else -(-len(data) // self.size)
        self.trouble = self._log.trouble if self._log is not None else ""
        """What is wrong with the log; empty when nothing is."""
        self.missing = _missing(self.size, len(data), _said(lead) if sound else 0, self._log)
        """How many pages neither the file nor the log has, in words; empty when they have all."""
        self._loose = self._log.loose if self._log is not None else ()

    @property
    def loose(self) -> range:
        """The numbers, below 0, of the pages in damaged frames of the log: no tree can lead to them."""
        return range(-1, -1 - len(self._loose), -1)

    def page(self, number: int) -> bytes | None:
        """The bytes of a page, as of the last commit; None beyond the end, or where half of one is left."""
        if number in self.loose:
            begin = self._loose[-1 - number]
            return self._log_data[begin : begin + self.size]
        if not 0 < number <= self.count or number == _LOCK_BYTE // self.size + 1:
            return None
        if self._log is not None and (at := self._log.offsets.get(number)) is not None:
            return self._log_data[at : at + self.size]
        found = self._data[(number - 1) * self.size : number * self.size]
        return found if len(found) == self.size else None

    def free(self) -> set[int]:
        """The pages that the database says are unused, as far as it can still be read."""
        first = self.page(1)
        if first is None or first[:16] != _MAGIC:
            return set()
        found: set[int] = set()
        trunk = int.from_bytes(first[32:36])
        while trunk not in found and len(found) < _FREE_MAX and (page := self.page(trunk)) is not None:
            count = int.from_bytes(page[4:8])
            if count > self.size // 4 - 2:
                break  # No trunk: whatever follows is not to be believed.
            found.add(trunk)
            found.update(int.from_bytes(page[8 + 4 * i : 12 + 4 * i]) for i in range(count))
            trunk = int.from_bytes(page[:4])
        return found


def _said(lead: bytes) -> int:
    """How many pages the head of a file says that it has; 0 where it says so of a former state."""
    return int.from_bytes(lead[28:32]) if lead[24:28] == lead[92:96] else 0


def _missing(size: int, length: int, said: int, log: Log | None) -> str:
    count = said if log is None else log.pages
    here = length // size
    logged = 0 if log is None else sum(here < number <= count for number in log.offsets)
    missing = count - here - logged
    if missing <= 0:
        return ""
    if length == 0:
        return f"{missing} of {count} pages were in the file, which is gone or empty"
    return f"{missing} of {count} pages are missing: the file was cut short"
