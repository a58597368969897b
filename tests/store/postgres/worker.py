"""A process of the tests: `python -m tests.store.postgres.worker claim|write <url> <name>`.

It says `ready`, waits for a line on its standard input, and then works until that input ends.
"""

import asyncio
import random
import sys

from holdfast.errors import NotFound
from holdfast.store.batch import Batch, Fence, Remove
from holdfast.store.host import ThisHost, this_process
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.query import SessionQuery
from holdfast.testing.store_contract.build import msg, ses, session, text, user

SESSIONS = 6


async def lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    return reader


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def claim(store: PostgresStore, name: str, ended: asyncio.Event) -> None:
    """Claim whatever nobody living runs, a few at a time, and keep it."""
    await store.register(this_process(ThisHost(), id=name, placements=("here",)))
    while not ended.is_set():
        page = await store.sessions(SessionQuery(limit=1000))
        free = [each.id for each in page.sessions if not each.busy]
        random.shuffle(free)
        for id in free[:4]:
            answer = await store.claim(id, name)
            if isinstance(answer, Fence):
                say(id, answer.number)
        await asyncio.sleep(0.01)


async def write(store: PostgresStore, name: str, ended: asyncio.Event) -> None:
    """Create, update, remove and re-create in sessions that all writers share."""
    choose = random.Random(name)
    own = 1000 * int(name)
    for n in range(own, own + 150):
        if ended.is_set():
            break
        shared = ses(choose.randrange(SESSIONS))
        await store.commit(Batch((user(n, session=shared), text(n + 100_000, n, session=shared))))
        if n % 3 == 0:
            await store.commit(Batch((Remove(shared, "message", msg(n)),)))
        if n % 6 == 0:
            again = Batch((user(n, session=shared), text(n + 200_000, n, session=shared)))
            await store.commit(again)
        if n % 10 == 0:
            child = ses(own + n)
            await store.commit(Batch((session(child, parent=shared), user(1, session=child))))
        if n % 20 == 0:
            await store.erase(ses(own + n))
    say("done")


async def main(task: str, url: str, name: str) -> None:
    store = await PostgresStore.open(url)
    reader, ended = await lines(), asyncio.Event()
    say("ready")
    await reader.readline()
    work = asyncio.create_task((claim if task == "claim" else write)(store, name, ended))
    await reader.read()
    ended.set()
    try:
        await work
    except NotFound as error:
        say("failed", error)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
