"""Several processes on one tree."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.store.batch import Batch
from holdfast.store.query import MessageQuery
from holdfast.testing.store_contract.build import S1, session
from tests.store.files import opencode_tree
from tests.store.files.lifecycle import Life
from tests.store.files.root import opened

pytestmark = pytest.mark.anyio

WRITER = """
import asyncio, sys
from pathlib import Path
from holdfast.store.batch import Batch
from holdfast.store.files.store import FilesStore
from holdfast.testing.store_contract.build import text, user

async def main(root, number, count):
    store = await FilesStore.open(Path(root))
    for n in range(count):
        id = number * 1_000_000 + n * 10
        await store.commit(Batch((user(id + 1), text(id + 2, id + 1))))
    await store.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""

COUNTER = """
import asyncio, sys
import holdfast

async def main(root):
    async with holdfast.open(f"file://{root}") as hf:
        for _ in range(20):
            key = ["session", "p1", "ses_1"]
            await hf.storage.update(key, lambda value: value | {"cost": value["cost"] + 1})

asyncio.run(main(sys.argv[1]))
"""

HOLDER = """
import sys
from pathlib import Path
from holdfast.store.files.store_lock import StoreLock

lock = StoreLock(Path(sys.argv[1]))
with lock.shared() if sys.argv[2] == "shared" else lock.exclusive():
    print("held", flush=True)
    sys.stdin.read()
"""

OPENER = """
import asyncio, sys
from pathlib import Path
from holdfast.store.files.store import FilesStore

async def main(root):
    store = await FilesStore.open(Path(root))
    print(await store.head())
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said


async def numbers(life: Life) -> list[tuple[str, int, int]]:
    """The messages, with the numbers of each and how many parts it has."""
    async with opened(life) as store:
        assert (await store.examine()).findings == ()
        page = await store.messages(MessageQuery(S1))
        return [(each.info.id, each.info.position, len(each.parts)) for each in page.messages]


async def check_writers(life: Life, processes: int, count: int) -> None:
    async with opened(life) as store:
        await store.commit(Batch((session(),)))
    running = [start(WRITER, life.root, number, count) for number in range(processes)]
    for process in running:
        finish(process)

    found = await numbers(life)
    assert len({id for id, _, _ in found}) == processes * count
    assert len({position for _, position, _ in found}) == processes * count
    assert {parts for _, _, parts in found} == {1}


@pytest.mark.ci
async def test_three_processes_write(tmp_path: Path) -> None:
    """Each commits ten times: nothing is refused, nothing lost, every number given once."""
    await check_writers(Life(tmp_path / "store"), 3, 10)


@pytest.mark.ci
async def test_new_stores_are_made_once(tmp_path: Path) -> None:
    """Five processes that open the same absent folder at once share one store."""
    life = Life(tmp_path / "store")
    running = [start(OPENER, life.root) for _ in range(5)]
    said = [process.communicate(timeout=60)[0] for process in running]

    assert len(set(said)) == 1
    assert [process.returncode for process in running] == [0] * 5


@pytest.mark.ci
async def test_updates_of_two_processes_all_count(tmp_path: Path) -> None:
    """Read, change and write is one act, whoever else does the same."""
    life = Life(tmp_path / "store")
    async with holdfast.open(f"file://{life.root}") as hf:
        await hf.storage.write(["session", "p1", "ses_1"], opencode_tree.info("ses_1", 1, cost=0))
    running = [start(COUNTER, life.root) for _ in range(2)]
    for process in running:
        finish(process)

    async with holdfast.open(f"file://{life.root}") as hf:
        assert (await hf.storage.read(["session", "p1", "ses_1"]))["cost"] == 40


@pytest.mark.ci
@pytest.mark.parametrize(("held", "reads", "writes"), [("shared", False, True), ("exclusive", True, True)])
async def test_locks_hold_across_processes(tmp_path: Path, held: str, reads: bool, writes: bool) -> None:
    """Readers share the store with each other; a writer has it alone."""
    life = Life(tmp_path / "store")
    async with holdfast.open(f"file://{life.root}") as hf:
        await hf.storage.write(["session", "p1", "ses_1"], opencode_tree.info("ses_1", 1))
        for operation, waits in (
            (hf.storage.read, reads),
            (lambda key: hf.storage.update(key, lambda value: value | {"title": "new"}), writes),
        ):
            holder = start(HOLDER, life.root, held)
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            done = asyncio.ensure_future(operation(["session", "p1", "ses_1"]))
            # What is not kept out ends while the other process holds the lock, however slow the machine is.
            ended, _ = await asyncio.wait([done], timeout=0.2 if waits else 30)
            assert bool(ended) is not waits
            finish(holder)
            await asyncio.wait_for(done, 30)
