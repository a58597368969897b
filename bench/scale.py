"""What grows with the store and what does not: the same questions to a small store and to a large one.

    scripts/bench scale [--sessions 10000] [--small 1000] [--keep FOLDER]

Three messages a session (13 KB of disk; 100,000 sessions are 1.3 GB). Prints JSON: the figures of both
stores, and each figure of the large one divided by the small one's. Doctor and the search index should grow
as the store does, everything else hardly at all. `--keep` leaves the stores there and uses those that it
finds.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from content import MINT, message_puts, session_put

from holdfast.store.base import Store
from holdfast.store.batch import Batch
from holdfast.store.open import open_store
from holdfast.store.query import SearchQuery, SessionQuery

AT_ONCE = 100
MESSAGES = 3


async def build(path: Path, sessions: int) -> None:
    """A store with so many sessions."""
    chance = random.Random(1)
    store = await open_store(f"sqlite://{path}")
    for start in range(0, sessions, AT_ONCE):
        puts = []
        for n in range(start, min(start + AT_ONCE, sessions)):
            session = MINT.descending("ses")
            puts.append(session_put(session, n, f"Session number {n}"))
            puts += [put for _ in range(MESSAGES) for put in message_puts(session, n, chance)]
        await store.commit(Batch(tuple(puts)))
    await store.close()


async def middle_ms(work: Callable[[], Awaitable[object]], count: int) -> float:
    """The median of some tries."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return round(statistics.median(times) * 1e3, 3)


async def measure(path: Path, sessions: int) -> dict[str, Any]:
    """Everything, on a store that was just opened and has no search index yet."""
    began = time.perf_counter()
    store = await open_store(f"sqlite://{path}")
    figures: dict[str, Any] = {"open_ms": round((time.perf_counter() - began) * 1e3, 3)}
    chance = random.Random(2)
    target = (await store.sessions(SessionQuery(limit=1))).sessions[0].id
    rows = iter([message_puts(target, n, chance) for n in range(40)])
    figures |= {
        "page of 100 sessions_ms": await middle_ms(lambda: store.sessions(SessionQuery()), 40),
        "page by project_ms": await middle_ms(lambda: store.sessions(SessionQuery(project="project3")), 40),
        "page by directory_ms": await middle_ms(
            lambda: store.sessions(SessionQuery(directory="/work/app3")), 40
        ),
        "append_ms": await middle_ms(lambda: store.commit(Batch(next(rows))), 40),
    }
    figures |= await searches(store)
    began = time.perf_counter()
    report = await store.examine()
    figures["doctor_s"] = round(time.perf_counter() - began, 3)
    figures["sound"] = report.clean
    figures["sessions"] = sessions
    await store.close()
    return figures


async def searches(store: Store) -> dict[str, Any]:
    """A first search, the rest of the index, and then rare and common words."""
    began = time.perf_counter()
    found = await store.search(SearchQuery("number"))
    first = time.perf_counter() - began
    indexed = found.indexed
    while found.indexed < 1:
        found = await store.search(SearchQuery("number"))
        await asyncio.sleep(0.01)
    return {
        "first search_ms": round(first * 1e3, 3),
        "indexed at the first answer": indexed,
        "whole index_s": round(time.perf_counter() - began, 3),
        "rare word_ms": await middle_ms(lambda: store.search(SearchQuery("77")), 10),
        "common word_ms": await middle_ms(lambda: store.search(SearchQuery("work")), 10),
        "common words_ms": await middle_ms(lambda: store.search(SearchQuery("src module work")), 10),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=10_000, help="of the large store")
    parser.add_argument("--small", type=int, default=1_000, help="of the small one")
    parser.add_argument("--keep", metavar="FOLDER", help="where the stores stay")
    arguments = parser.parse_args()
    place = Path(arguments.keep or tempfile.mkdtemp(prefix="holdfast-bench-", dir=".")).resolve()
    place.mkdir(parents=True, exist_ok=True)
    figures: dict[str, dict[str, Any]] = {}
    try:
        for count in (arguments.small, arguments.sessions):
            path = place / f"{count}.db"
            if not path.exists():
                asyncio.run(build(path, count))
            for suffix in ("", "-wal", "-shm"):
                Path(f"{path}-search{suffix}").unlink(missing_ok=True)
            figures[str(count)] = asyncio.run(measure(path, count)) | {"bytes": path.stat().st_size}
    finally:
        if arguments.keep is None:
            shutil.rmtree(place, ignore_errors=True)
    small, large = figures[str(arguments.small)], figures[str(arguments.sessions)]
    growth = {
        name: round(large[name] / small[name], 2)
        for name in small
        if name not in ("sound", "indexed at the first answer") and small[name]
    }
    print(json.dumps({"load": os.getloadavg(), **figures, "growth": growth}, indent=2))


if __name__ == "__main__":
    main()
