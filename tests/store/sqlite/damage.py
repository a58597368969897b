"""A store of some fifty pages with a bit of everything in it, and whose records are on which page."""

import contextlib
import random
from pathlib import Path

import apsw

from holdfast.store.batch import Batch, Remove
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.tables.connection import Connection
from holdfast.testing.store_contract.build import assistant, msg, record, ses, session, text, user

PAGE = 4096
SESSIONS = 14
ERASED = 5
SCOPE = "project_p"
TODO = {"status": "pending", "priority": "high"}
FEW_RECORDS = 54
CACHE = {"key": "k", "text": "v", "time": {"created": 1}}
_COLUMNS = "r.k, r.kind, r.mark, r.seq, r.place, r.parent, r.at, r.id, r.data"


def word(n: int) -> str:
    """What every page of a session holds: its texts repeat it, and its ids contain it."""
    return f"{n:03x}AAAAAAAAAAAAAA"


async def make(path: Path) -> None:
    """Long texts (chains of pages), short ones, edits, removed messages, an erased session, lists, scopes."""
    store = await SqliteStore.open(path)
    for n in range(1, SESSIONS + 1):
        parent = ses(n - 1) if n % 4 == 0 else None
        await store.commit(Batch((session(ses(n), title=f"Session {n}", parent=parent),)))
    await store.commit(Batch((record(SCOPE, "cache", SCOPE, CACHE),)))
    for turn in range(6):
        for n in range(1, SESSIONS + 1):
            here = ses(n)
            ask, told, said = ((turn * 10 + i + 1) * 4096 + n for i in range(3))
            size = 9000 if (n + turn) % 7 == 0 else 120 * (turn + 1)
            words = f"{word(n)} " * (size // 18 + 1)
            await store.commit(
                Batch(
                    (
                        user(ask, session=here),
                        record(here, "todo", here, [TODO | {"content": f"{word(n)} {turn}"}]),
                        assistant(told, ask, session=here),
                        text(said, told, f"draft {word(n)}", session=here),
                    )
                )
            )
            await store.commit(Batch((text(said, told, words, session=here),)))
    for n in (2, 7):
        await store.commit(Batch((Remove(ses(n), "message", msg(4096 + n)),)))
    await store.erase(ses(ERASED))
    await store.close()


def rows(path: Path) -> dict[str, tuple[object, list[tuple[object, ...]]]]:
    """Each living session: its own JSON, and every row that it has."""
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as opened:
        db: Connection = opened
        found = {}
        for n, id, data in db.execute("SELECT n, id, data FROM session WHERE data IS NOT NULL").fetchall():
            found[id] = (
                data,
                db.execute(f"SELECT {_COLUMNS} FROM record r WHERE session=?", (n,)).fetchall(),
            )
        return found


def tenants(path: Path) -> dict[int, set[str]]:
    """By page: the sessions that have a record there. SQLite says what each page is, its bytes say whose."""
    data = path.read_bytes()
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as opened:
        db: Connection = opened
        size = db.execute("PRAGMA page_size").get
        kinds = db.execute(
            "SELECT pageno, pagetype FROM dbstat WHERE name IN ('session', 'record') AND pagetype<>'internal'"
        ).fetchall()
    found: dict[int, set[str]] = {}
    for number, _ in kinds:
        page = data[(number - 1) * size : number * size]
        words = {ses(n): word(n) for n in range(1, SESSIONS + 1)} | {SCOPE: SCOPE}
        found[number] = {id for id, sign in words.items() if sign.encode() in page}
    return found


def garbage(size: int, seed: int) -> bytes:
    """What a broken disk leaves."""
    return random.Random(seed).randbytes(size)


async def few(path: Path) -> None:
    """The smallest store whose two tables have inner pages, in the file alone: made in a moment."""
    store = await SqliteStore.open(path)
    await store.commit(Batch(tuple(session(ses(n), title=f"Session {n} " * 30) for n in range(1, 7))))
    for n in range(1, 7):
        asked = [user(turn * 4096 + n, session=ses(n)) for turn in range(1, 4)]
        told = [assistant((turn + 8) * 4096 + n, turn * 4096 + n, session=ses(n)) for turn in range(1, 4)]
        said = [
            text((turn + 16) * 4096 + n, (turn + 8) * 4096 + n, f"{word(n)} " * 40, session=ses(n))
            for turn in range(1, 4)
        ]
        await store.commit(Batch((*asked, *told, *said)))
    await store.close()


def hit(data: bytes, number: int, page: bytes) -> bytes:
    """The file with another page in the place of one."""
    return data[: (number - 1) * PAGE] + page + data[number * PAGE :]


def page(data: bytes, number: int) -> bytes:
    """The bytes of one page."""
    return data[(number - 1) * PAGE : number * PAGE]


def roots(path: Path) -> dict[str, int]:
    """Where each table and index begins."""
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as opened:
        return {
            str(name): int(str(root))
            for name, root in opened.execute("SELECT name, rootpage FROM sqlite_master")
        }


def leaves(path: Path, table: str) -> list[int]:
    """The pages that hold the rows of a table."""
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as opened:
        found = opened.execute("SELECT pageno FROM dbstat WHERE name=? AND pagetype='leaf'", (table,))
        return [int(str(number)) for (number,) in found]
