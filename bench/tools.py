"""What the tools cost: grep and glob over many files as ratios to ripgrep itself, a step with one read, an
edit of a large file as a ratio to the least that is safe, and the memory of many reads at once.

    scripts/bench tools [--quick]

ripgrep runs with the same task, its output read and thrown away; both take turns, so that a busy moment meets
both. The tools run in a call of a real turn, with its permissions, its process group and its guard.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from turn import Stage, measured, stage

from holdfast.location import ripgrep
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool

FILES = 50_000
A_FOLDER = 100


def grow(top: Path, files: int) -> None:
    """A tree of source files, the top of a checkout; one in a thousand holds the needle, one is a `.toml`.

    (Below the top of a checkout the rules above count too: that takes ripgrep longer, and ours more so.)
    """
    subprocess.run(["git", "init", "-q"], cwd=top, check=True)
    random = Random(1)
    words = ["".join(random.choices("abcdefghijklmnop", k=7)) for _ in range(2_000)]
    for number in range(files):
        folder = top / f"d{number // A_FOLDER % 20}" / f"e{number // A_FOLDER}"
        if number % A_FOLDER == 0:
            folder.mkdir(parents=True)
        lines = [" ".join(random.choices(words, k=8)) for _ in range(20)]
        if number % 1_000 == 1:
            lines.append("needle")
        suffix = "toml" if number % 1_000 == 2 else "py"
        (folder / f"{words[number % A_FOLDER]}{number}.{suffix}").write_text("\n".join(lines))


def ripgrep_ms(top: Path, *options: str) -> float:
    """The time of ripgrep alone, in milliseconds."""
    program = ripgrep.program()
    assert program is not None
    began = time.perf_counter()
    done = subprocess.run(
        [program, "--no-config", *options, "./"],
        cwd=top,
        capture_output=True,
        check=False,
        start_new_session=True,  # As a call runs it: the system shares its processors by session.
    )
    assert done.returncode in (0, 1), done.stderr
    return (time.perf_counter() - began) * 1e3


async def compared(run: Callable[[], Awaitable[object]], alone: Callable[[], float], times: int) -> Any:
    """Both, turn by turn: the middle of each, and of the ratios pair by pair."""
    ours, theirs = [], []
    for _ in range(times):
        theirs.append(await asyncio.to_thread(alone))
        began = time.perf_counter()
        await run()
        ours.append((time.perf_counter() - began) * 1e3)
    ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
    middle = statistics.median
    return {
        "wall_ms": round(middle(ours), 1),
        "ripgrep_ms": round(middle(theirs), 1),
        "ratio": round(middle(ours) / middle(theirs), 2),
        "ratios": [round(ratios[0], 2), round(middle(ratios), 2), round(ratios[-1], 2)],
        "n": times,
    }


async def searches(on: Stage, times: int) -> dict[str, Any]:
    """Both tools, in the context of one call."""
    top, figures = on.project, {}
    tasks = {
        "grep, a word in few files": (
            "grep",
            {"pattern": "needle"},
            ("--hidden", "--line-number", "--glob=!.git", "--regexp=needle"),
        ),
        "grep, a pattern without a match but one": (
            "grep",
            {"pattern": r"needl[e]$|\bzz[a-z]+zz\b"},
            ("--hidden", "--line-number", "--glob=!.git", r"--regexp=needl[e]$|\bzz[a-z]+zz\b"),
        ),
        "glob, few names": ("glob", {"pattern": "*.toml"}, ("--files", "--glob=*.toml", "--glob=!.git")),
        "glob, few paths": (
            "glob",
            {"pattern": "d10/**/*.toml"},
            ("--files", "--glob=/d10/**/*.toml", "--glob=!.git"),
        ),
    }

    @tool(name="timed")
    async def timed(context: ToolContext) -> str:
        """Run everything."""
        for name, (called, input, options) in tasks.items():
            found = on.hf.tools.current(called)
            assert found is not None

            async def run(run=found.tool.run, input=input) -> None:  # type: ignore[no-untyped-def]
                await run(context, input)

            await run()
            figures[name] = await compared(
                run, lambda options=options: ripgrep_ms(top, *options), times * (3 if called == "glob" else 1)
            )
        return "done"

    on.hf.tools.register(timed)
    await on.turn(await on.session(), Step(Call("timed", {}, id="timed")), Step(Say("done")))
    assert len(figures) == len(tasks), "the call failed"
    return figures


def replaced_ms(path: Path, old: bytes, new: bytes) -> float:
    """The least that an edit does: read, replace, write beside it, sync, rename."""
    began = time.perf_counter()
    data = path.read_bytes()
    assert data.count(old) == 1
    beside = path.with_suffix(".new")
    with beside.open("wb") as file:
        file.write(data.replace(old, new))
        file.flush()
        os.fsync(file.fileno())
    beside.rename(path)
    return (time.perf_counter() - began) * 1e3


async def large_edit(on: Stage, times: int, size: int) -> dict[str, Any]:
    """A line in the middle of a large file, in a step of its own, and the same without a session."""
    path, lines = on.project / "large.txt", size // 40
    path.write_text("".join(f"line {number:>10} of a file that is large\n" for number in range(lines)))
    session, ids = await on.session(), count()
    look = Call("read", {"filePath": "large.txt", "limit": 5}, id="look")
    await on.turn(session, Step(look), Step(Say("ok")))
    short = await measured(lambda: on.turn(session, Step(Say("ok"))), times)
    names = [f"line {lines // 2:>10} of", *(f"edited {number} in" for number in range(times + 1))]

    async def editing() -> None:
        number = next(ids)
        old, new = names[number : number + 2]
        call = Call("edit", {"filePath": "large.txt", "oldString": old, "newString": new}, id=f"e{number}")
        await on.turn(session, Step(call), Step(Say("done")))
        assert new in path.read_text(), "the edit failed"

    whole = await measured(editing, times)
    last = names[next(ids)].encode()
    least = [await asyncio.to_thread(replaced_ms, path, last, last) for _ in range(times)]
    ours, floor = whole["wall_ms"] - short["wall_ms"], statistics.median(least)
    return {
        "wall_ms": round(ours, 1),
        "least_ms": round(floor, 1),
        "ratio": round(ours / floor, 2),
        "bytes": path.stat().st_size,
        "n": times,
    }


def resident_mib() -> float:
    """The memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


async def many_reads(on: Stage, reads: int, size: int) -> dict[str, Any]:
    """Files of which a page is shown, all at once: what is held on the way, and what stays."""
    text = "".join(f"line {number} of many\n" for number in range(size // 20))
    for number in range(reads):
        (on.project / f"many{number}.txt").write_text(text)
    found = on.hf.tools.current("read")
    assert found is not None
    figures: dict[str, Any] = {"bytes a file": len(text)}

    @tool(name="many")
    async def many(context: ToolContext, reads: int) -> str:
        """Read at once."""
        run, began, most, done = found.tool.run, time.perf_counter(), resident_mib(), False
        before = most

        async def watch() -> None:
            nonlocal most
            while not done:
                most = max(most, resident_mib())
                await asyncio.sleep(0.005)

        async def one(number: int) -> None:  # Nothing keeps the answer: what is held is the tool's own.
            assert "line 1 of" in (await run(context, {"filePath": f"many{number}.txt"})).text

        watching = asyncio.create_task(watch())
        await asyncio.gather(*(one(number) for number in range(reads)))
        done = True
        await watching
        figures[f"{reads} at once"] = {
            "wall_ms": round((time.perf_counter() - began) * 1e3, 1),
            "grown_mib": round(most - before, 1),
            "kept_mib": round(resident_mib() - before, 1),
        }
        return "done"

    on.hf.tools.register(many)
    session = await on.session()
    for number, each in enumerate((reads // 100, reads // 10, reads)):
        await on.turn(session, Step(Call("many", {"reads": each}, id=f"m{number}")), Step(Say("done")))
    assert len(figures) == 4, "a call failed"
    return figures


async def bench(place: Path, *, quick: bool) -> dict[str, Any]:
    """Every row."""
    async with stage(place) as on:
        files = FILES // 50 if quick else FILES
        grow(on.project, files)
        figures = {"files": files, **await searches(on, 3 if quick else 15)}
        session, ids = await on.session(), count()
        await on.turn(session, Step(Say("warm")))

        async def reading() -> None:
            call = Call("read", {"filePath": "a.txt"}, id=f"call_{next(ids)}")
            await on.turn(session, Step(call), Step(Say("done")))

        times = 5 if quick else 40
        short = await measured(lambda: on.turn(session, Step(Say("ok"))), times)
        whole = await measured(reading, times)
        figures["a step with one read"] = {
            "wall_ms": round(whole["wall_ms"] - short["wall_ms"], 3),
            "turn": whole,
            "turn without it": short,
        }
        figures["an edit of a large file"] = await large_edit(
            on, 3 if quick else 15, (1 if quick else 10) * 1_000_000
        )
        figures["reads at once"] = await many_reads(on, 100 if quick else 1_000, 1_000_000)
    return figures


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
