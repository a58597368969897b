"""What the engine adds to a model's own time: prints JSON with ratios to a minimal loop over raw SQLite.

    scripts/bench turn [--quick]

The model is scripted and answers at once, in the same process, so what is measured is ours: admitting,
claiming, recording, announcing, settling. A follower listens. The minimal loop does what cannot be left out:
it appends the prompt and the answer to two tables, synced, and joins the deltas.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from raw import Raw

import holdfast
from holdfast.app import Holdfast
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step

DELTAS = 2_000
WORDS = "wrapper " * DELTAS


def cpu_s() -> float:
    """CPU time of this process, its threads included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measured(work: Callable[[], Awaitable[object]], times: int) -> dict[str, float]:
    """Wall and CPU time of one run, in milliseconds: the middle of several."""
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), cpu_s()
        await work()
        walls.append(time.perf_counter() - wall)
        cpus.append(cpu_s() - cpu)
    middle = statistics.median
    return {
        "wall_ms": round(middle(walls) * 1e3, 3),
        "wall_max_ms": round(max(walls) * 1e3, 3),
        "cpu_ms": round(middle(cpus) * 1e3, 3),
        "n": times,
    }


class Stage:
    """A store, a script and a project."""

    def __init__(self, hf: Holdfast, script: ScriptedProvider, project: Path) -> None:
        self.hf, self.script, self.project = hf, script, project

    async def session(self) -> str:
        """A session with a title, so that no model is asked for one."""
        return (await self.hf.sessions.create(directory=self.project, title="Bench")).id

    async def turn(self, session: str, *steps: Step) -> None:
        """A prompt and all that follows."""
        self.script.add(*steps)
        answer = await self.hf.sessions.process(session, "Go on.")
        assert answer.info.error is None, answer.info.error


@asynccontextmanager
async def stage(place: Path) -> AsyncIterator[Stage]:
    """The runtime with a person's settings."""
    project = place / "project"
    project.mkdir()
    (project / "a.txt").write_text("one line\n" * 50)
    folder = place / "config" / "holdfast"
    folder.mkdir(parents=True)
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"m": {"limit": {"context": 10_000_000, "output": 8_000}}},
    }
    (folder / "holdfast.json").write_text(json.dumps({"model": "bench/m", "provider": {"bench": entry}}))
    os.environ["XDG_CONFIG_HOME"] = str(place / "config")
    os.environ["XDG_DATA_HOME"] = str(place / "data")
    script = ScriptedProvider()
    async with holdfast.open(f"sqlite://{place}/store.db", provider=script) as hf:
        heard = 0

        async def listen() -> None:
            nonlocal heard
            async for frames in hf.feed.follow():
                heard += len(frames)

        listener = asyncio.create_task(listen())
        await asyncio.sleep(0.05)
        yield Stage(hf, script, project)
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)
        assert heard, "nobody listened"


async def minimal(raw: Raw, deltas: int) -> None:
    """What cannot be left out: the prompt and the answer stored, the deltas joined."""
    raw.append('{"role":"user"}', '{"type":"text","text":"Go on."}')
    pieces = []
    for _ in range(deltas):
        pieces.append("wrapper ")
        if len(pieces) % 20 == 0:
            await asyncio.sleep(0)
    raw.append('{"role":"assistant"}', json.dumps({"type": "text", "text": "".join(pieces)}))


async def bench(place: Path, *, quick: bool) -> dict[str, Any]:
    """Every row."""
    figures: dict[str, Any] = {}
    few = 3 if quick else 10
    async with stage(place) as on:
        raw = Raw(place / "raw.db")
        session = await on.session()
        await on.turn(session, Step(Say("warm")))

        burst = await measured(lambda: on.turn(session, Step(Say(WORDS), delta_characters=8)), few)
        short = await measured(lambda: on.turn(session, Step(Say("ok"))), few * 3)
        floor = await measured(lambda: minimal(raw, DELTAS), few)
        floor_short = await measured(lambda: minimal(raw, 1), few * 3)
        figures["2,000 deltas"] = {
            **burst,
            "cpu_us a delta": round((burst["cpu_ms"] - short["cpu_ms"]) / DELTAS * 1e3, 2),
            "minimal": floor,
        }
        figures["short turn, few messages"] = {
            **short,
            "minimal": floor_short,
            "ratio": round(short["wall_ms"] / floor_short["wall_ms"], 1),
        }
        ids = count()

        async def calling() -> None:
            call = Call("read", {"filePath": "a.txt"}, id=f"call_{next(ids)}")
            await on.turn(session, Step(call), Step(Say("done")))

        figures["turn with one tool call"] = await measured(calling, few * 2)
        long = await on.session()
        for _ in range(50 if quick else 500):
            await on.turn(long, Step(Say("A longer answer. " * 20)))
        figures[f"short turn at {100 if quick else 1_000} messages"] = await measured(
            lambda: on.turn(long, Step(Say("ok"))), few * 2
        )
        for many in (20, 50):
            figures[f"{many} sessions x 400 deltas"] = await together(on, many)
        raw.close()
    figures["peak memory_MB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    return figures


async def together(on: Stage, count: int) -> dict[str, float]:
    """Many sessions at once."""
    sessions = [await on.session() for _ in range(count)]
    on.script.add(*(Step(Say("wrapper " * 400), delta_characters=8, session=each) for each in sessions))
    wall, cpu = time.perf_counter(), cpu_s()
    await asyncio.gather(*(on.hf.sessions.process(each, "Go on.") for each in sessions))
    return {
        "wall_s": round(time.perf_counter() - wall, 3),
        "cpu_s": round(cpu_s() - cpu, 3),
        "cpu_us a delta": round((cpu_s() - cpu) / (count * 400) * 1e6, 1),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=".")).resolve()
    try:
        figures = asyncio.run(bench(place, quick=arguments.quick))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(json.dumps({"python": sys.version.split()[0], "cores": os.cpu_count(), **figures}, indent=2))


if __name__ == "__main__":
    main()
