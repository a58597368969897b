"""What snapshots of files cost, beside plain git doing the same, and how much room they take.

    scripts/bench snapshot [--quick] [--files 5000,50000]

For each size: the first tree, one when nothing has changed, one after a change, the diff and the undo of 200
files. Plain git is `git add --all` and `git write-tree` in a repository of its own, as others take theirs;
both take turns. Then: how many calls of git a step that only reads makes, and the room after 1,000 trees of
a file that cannot be made smaller, within a budget.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tools import grow
from turn import stage

from holdfast import git
from holdfast.location.shadow import file_diffs, place
from holdfast.location.shadow.repository import Shadow
from holdfast.location.shadow.shadows import Shadows
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step

CHANGED = 200
BUDGET_MIB = 64
STEPS = 1_000


def took_ms(work: Callable[[], object]) -> float:
    """How long some work takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


class PlainGit:
    """A git directory beside the worktree, filled by `git add --all`."""

    def __init__(self, git_dir: Path, worktree: Path) -> None:
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_DIR": str(git_dir),
            "GIT_WORK_TREE": str(worktree),
        }
        self._run("init", "--quiet")

    def take(self) -> None:
        """A tree of the files."""
        self._run("add", "--all")
        self._run("write-tree")

    def _run(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], env=self._environment, check=True, capture_output=True)


def beside(ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """The middle of both, and of their ratios pair by pair."""
    ratios = sorted(one / other for one, other in zip(ours, theirs, strict=True))
    return {
        "ms": round(statistics.median(ours), 1),
        "git_ms": round(statistics.median(theirs), 1),
        "ratios": [round(each, 2) for each in (ratios[0], statistics.median(ratios), ratios[-1])],
        "n": len(ours),
    }


def trees(top: Path, files: int, times: int) -> dict[str, Any]:
    """The rows about trees, of so many files."""
    project = top / f"p{files}"
    project.mkdir()
    grow(project, files)
    paths = sorted(project.rglob("*.py"))
    shadow, plain = Shadow(top / f"shadow{files}", project), PlainGit(top / f"plain{files}", project)
    figures: dict[str, Any] = {"first": beside([took_ms(shadow.take)], [took_ms(plain.take)])}
    same, one, many = [], [], []
    for number in range(times):
        same.append((took_ms(shadow.take), took_ms(plain.take)))
        paths[number].write_text(f"changed {number}\n")
        one.append((took_ms(shadow.take), took_ms(plain.take)))
    before = shadow.take().id
    for number, path in enumerate(paths[:CHANGED]):
        path.write_text(path.read_text() + f"\nline {number}\n")
    many.append((took_ms(shadow.take), took_ms(plain.take)))
    after = shadow.take().id
    for name, rows in (("unchanged", same), ("one changed", one), (f"{CHANGED} changed", many)):
        figures[name] = beside([ours for ours, _ in rows], [theirs for _, theirs in rows])
    asked = [took_ms(lambda: file_diffs.differences(shadow, before, after)) for _ in range(times)]
    figures[f"diff of {CHANGED}"] = {"ms": round(statistics.median(asked), 1), "n": times}
    return figures


async def undo(top: Path, files: int) -> dict[str, Any]:
    """A revert of 200 files that an agent wrote, and back again."""
    (top / "u").mkdir()
    async with stage(top / "u") as on:
        grow(on.project, files)
        session = await on.session()
        ids = count()
        for at in range(0, CHANGED, 50):
            calls = [
                Call(
                    "write", {"filePath": f"made/{number}", "content": f"{number}\n"}, id=f"call_{next(ids)}"
                )
                for number in range(at, at + 50)
            ]
            await on.turn(session, Step(*calls), Step(Say("done")))
        first = (await on.hf.sessions.messages(session)).messages[0].info.id
        began = time.perf_counter()
        await on.hf.sessions.revert(session, first)
        middle = time.perf_counter()
        assert not any((on.project / "made").iterdir()), "the files are gone"
        await on.hf.sessions.unrevert(session)
        ended = time.perf_counter()
        assert len(list((on.project / "made").iterdir())) == CHANGED, "the files are back"
    return {"revert_ms": round((middle - began) * 1e3), "unrevert_ms": round((ended - middle) * 1e3)}


async def reading(top: Path) -> int:
    """How many calls of git a step that only reads makes."""
    (top / "r").mkdir()
    async with stage(top / "r") as on:
        session, asked, run = await on.session(), [], git.run

        def counted(arguments: Any, **more: Any) -> Any:
            asked.append(arguments)
            return run(arguments, **more)

        git.run = counted  # type: ignore[assignment]
        await on.turn(session, Step(Call("read", {"filePath": "a.txt"}, id="c")), Step(Say("done")))
        git.run = run
    return len(asked)


async def room(top: Path, steps: int) -> dict[str, Any]:
    """The room that many trees of a growing history take, within a budget."""
    project = top / "room"
    project.mkdir()
    worker = Shadows(top / "data").at("global", project)
    worker.budget = BUDGET_MIB << 20
    chance, most = random.Random(1), 0
    for number in range(steps):
        (project / "noise").write_bytes(chance.randbytes(200_000))
        await worker.take(place.folder_of("ses_1"), within_s=60)
        if number % 50 == 0:
            most = max(most, worker.shadow.size())
    await worker.check()
    return {
        "steps": steps,
        "written_mib": round(steps * 200_000 / (1 << 20)),
        "budget_mib": BUDGET_MIB,
        "most_mib": round(most / (1 << 20), 1),
        "end_mib": round(worker.shadow.size() / (1 << 20), 1),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--files", default="5000,50000", help="how many files, with commas")
    arguments = parser.parse_args()
    quick = arguments.quick
    sizes = [200] if quick else [int(each) for each in arguments.files.split(",")]
    top = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=".")).resolve()
    try:
        figures: dict[str, Any] = {str(files): trees(top, files, 3 if quick else 9) for files in sizes}
        figures["undo of 200 files"] = asyncio.run(undo(top, sizes[0]))
        figures["calls of git in a step that reads"] = asyncio.run(reading(top))
        figures["room"] = asyncio.run(room(top, 150 if quick else STEPS))
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(json.dumps({"python": sys.version.split()[0], "cores": os.cpu_count(), **figures}, indent=2))


if __name__ == "__main__":
    main()
