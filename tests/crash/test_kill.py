"""Real processes on one store: killed without warning, and many at once."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.errors import LeaseLost
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Fence, Held
from holdfast.store.host import ThisHost, this_process
from holdfast.store.open import open_store
from holdfast.store.query import MessageQuery
from holdfast.testing.store_contract.build import S1, session, user

WRITER = Path(__file__).with_name("writer.py")
KILLS = 10


@pytest.fixture(params=["sqlite", "files"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store with one session, closed."""
    url = f"sqlite://{tmp_path}/store.db" if request.param == "sqlite" else f"file://{tmp_path}/tree"
    store = await open_store(url)
    await store.commit(Batch((session(placement=ThisHost().id),)))
    await store.close()
    return url


def start(url: str, name: int, count: int) -> subprocess.Popen[bytes]:
    """A writer process."""
    command = [sys.executable, str(WRITER), url, S1, str(name), str(count)]
    # Without a buffer: `communicate` does not know of what stands in one.
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)


async def check(store: Store, acknowledged: set[str]) -> None:
    """Everything acknowledged is there, nothing is there by half, and the store is sound."""
    page = await store.messages(MessageQuery(S1))
    assert acknowledged - {message.info.id for message in page.messages} == set()
    assert [message.info.id for message in page.messages if len(message.parts) != 2] == []
    assert (await store.examine()).findings == ()


@pytest.mark.ci
async def test_a_killed_writer_loses_nothing_acknowledged(url: str) -> None:
    """SIGKILL under 20 committers, again and again: no acknowledged commit is lost, no half batch is seen."""
    chance = random.Random(7)
    acknowledged: set[str] = set()
    for kill in range(KILLS):
        writer = start(url, kill, 1_000_000)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(chance.uniform(0.01, 0.2))
        writer.kill()
        rest, errors = writer.communicate(timeout=30)
        assert errors == b""
        # The last line may be cut off by the kill; what was said in full was acknowledged before.
        acknowledged.update((first + rest).decode().split("\n")[:-1])

        store = await open_store(url, create=False)
        await check(store, acknowledged)
        await store.close()
    assert len(acknowledged) > KILLS


@pytest.mark.ci
async def test_twenty_processes_lose_nothing_and_meet_no_lock_error(url: str) -> None:
    """20 processes with 30 commits each: 600 messages, no error."""
    writers = [start(url, name, 30) for name in range(20)]
    acknowledged: set[str] = set()
    for writer in writers:
        output, errors = writer.communicate(timeout=120)
        assert errors == b""
        assert writer.returncode == 0
        acknowledged.update(output.decode().split())

    assert len(acknowledged) == 600
    store = await open_store(url, create=False)
    await check(store, acknowledged)
    await store.close()


async def test_of_two_owners_exactly_one_commits(url: str) -> None:
    """The second claim is held off; after a take-over the first owner's commit is refused."""
    one, two = await open_store(url), await open_store(url)
    host = ThisHost()
    for store, name in ((one, "one"), (two, "two")):
        await store.register(this_process(host, id=name, placements=(host.id,)))

    first = await one.claim(S1, "one")
    assert isinstance(first, Fence)
    assert await two.claim(S1, "two") == Held(S1, "one")
    await one.commit(Batch((user(1),), fence=first))

    await one.retire("one")
    second = await two.claim(S1, "two")
    assert second == Fence(S1, "two", first.number + 1)
    with pytest.raises(LeaseLost):
        await one.commit(Batch((user(2),), fence=first))
    assert isinstance(second, Fence)
    await two.commit(Batch((user(3),), fence=second))

    page = await one.messages(MessageQuery(S1))
    assert [message.info.id for message in page.messages] == [user(1).id, user(3).id]
    await one.close()
    await two.close()
