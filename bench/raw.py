"""The floor: SQLite with the same durability and nothing that makes a store a store.

Integer keys, no id index, no feed, no checks; the wire JSON of each record, encoded beforehand: three inserts
and one update a commit.
"""

import asyncio
import queue
import threading
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast.schema import stored
from holdfast.store.batch import Put


def wire(put: Put) -> str:
    """A record as clients see it, ids included."""
    return stored.whole(put.kind, put.data, id=put.id, session=put.session, parent=put.parent).decode()


class Raw:
    """Two tables in WAL mode, synced at each commit."""

    def __init__(self, path: Path) -> None:
        self.db = apsw.Connection(str(path))
        self.db.set_busy_timeout(60_000)
        for setting in ("journal_mode=WAL", "synchronous=FULL", "journal_size_limit=16777216"):
            self.db.execute(f"PRAGMA {setting}").fetchall()
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS session(n INTEGER PRIMARY KEY, seq INTEGER, data TEXT);"
            "CREATE TABLE IF NOT EXISTS message(k INTEGER PRIMARY KEY, data TEXT);"
            "CREATE TABLE IF NOT EXISTS part(k INTEGER PRIMARY KEY, message INTEGER, data TEXT);"
            "INSERT OR IGNORE INTO session VALUES (1, 0, '{}')"
        )
        self._k = self.db.execute("SELECT max(k) FROM part").get or 0

    def append(self, message: str, *parts: str) -> None:
        """One message with its parts, durably."""
        self._k += 1
        k = self._k
        execute = self.db.execute
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO message VALUES (?,?)", (k, message))
        for part in parts:
            self._k += 1
            execute("INSERT INTO part VALUES (?,?,?)", (self._k, k, part))
        execute("UPDATE session SET seq=? WHERE n=1", (self._k,))
        execute("COMMIT")

    def fill(self, rows: list[tuple[Put, Put, Put]]) -> None:
        """Many messages in one commit."""
        with self.db:
            for message, *parts in rows:
                self._k += 1
                k = self._k
                self.db.execute("INSERT INTO message VALUES (?,?)", (k, wire(message)))
                for part in parts:
                    self._k += 1
                    self.db.execute("INSERT INTO part VALUES (?,?,?)", (self._k, k, wire(part)))

    def fork(self, limit: int) -> None:
        """The first messages once more, by INSERT … SELECT, durably."""
        above = self.db.execute("SELECT max(k) FROM part").get
        execute = self.db.execute
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO message SELECT k + ?, data FROM message WHERE k <= ?", (above, limit * 3))
        execute(
            "INSERT INTO part SELECT k + ?1, message + ?1, data FROM part WHERE k <= ?2", (above, limit * 3)
        )
        execute("UPDATE session SET seq=?", (above,))
        execute("COMMIT")

    def load_plain(self, limit: int) -> list[Any]:
        """The same, as plain dicts and lists, a decode a record."""
        decode = msgspec.json.decode
        rows = self.db.execute(
            "SELECT CAST(data AS BLOB) FROM message WHERE k <= ?1 UNION ALL "
            "SELECT CAST(data AS BLOB) FROM part WHERE k <= ?1",
            (limit * 3,),
        )
        return [decode(data) for (data,) in rows]

    def load(self, limit: int) -> bytes:
        """Messages with their parts grouped under them, as JSON bytes."""
        pieces: list[bytes] = [b"["]
        last = 0
        for k, message, part in self.db.execute(
            "SELECT m.k, CAST(m.data AS BLOB), CAST(p.data AS BLOB) FROM message m "
            "JOIN part p ON p.k BETWEEN m.k + 1 AND m.k + 2 "
            "WHERE m.k <= ? ORDER BY m.k, p.k",
            (limit * 3,),
        ):
            if k != last:
                pieces += [b']},{"info":' if last else b'{"info":', message, b',"parts":[', part]
                last = k
            else:
                pieces += [b",", part]
        pieces.append(b"]}]")
        return b"".join(pieces)

    def load_decoded(self, limit: int, message_decoder: Any, part_decoder: Any) -> list[Any]:
        """The same, decoded to structs."""
        found: list[Any] = []
        last = 0
        for k, message, part in self.db.execute(
            "SELECT m.k, CAST(m.data AS BLOB), CAST(p.data AS BLOB) FROM message m "
            "JOIN part p ON p.k BETWEEN m.k + 1 AND m.k + 2 "
            "WHERE m.k <= ? ORDER BY m.k, p.k",
            (limit * 3,),
        ):
            if k != last:
                parts: list[Any] = []
                found.append((message_decoder.decode(message), parts))
                last = k
            parts.append(part_decoder.decode(part))
        return found

    def close(self) -> None:
        """Close the file."""
        self.db.close()


class RawThread:
    """The same, awaited through one thread: what anything that must not block its event loop pays."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()

    def _main(self) -> None:
        raw = Raw(self._path)
        while (job := self._queue.get()) is not None:
            records, future = job
            raw.append(*records)
            self._loop.call_soon_threadsafe(future.set_result, None)
        raw.close()

    async def append(self, *records: str) -> None:
        """One commit, awaited."""
        future = self._loop.create_future()
        self._queue.put((records, future))
        await future

    def close(self) -> None:
        """End the thread."""
        self._queue.put(None)
        self._thread.join()
