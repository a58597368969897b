"""A process that writes as fast as it can and says what was acknowledged: `writer.py URL SESSION NAME COUNT`.

Each commit is a message with two parts. A line of standard output is a message id whose commit returned.
"""

import asyncio
import os
import sys

from holdfast.store.batch import Batch
from holdfast.store.open import open_store
from holdfast.testing.store_contract.build import part, user

COMMITTERS = 20


async def main(url: str, session: str, name: int, count: int) -> None:
    """Commit, then say so."""
    store = await open_store(url, create=False)
    numbers = iter(range(count))

    async def committer() -> None:
        for number in numbers:
            n = (name << 24) + number * 4
            message = user(n, session=session)
            first = part(n + 1, n, {"type": "text", "text": f"{n} one"}, session=session)
            second = part(n + 2, n, {"type": "text", "text": f"{n} two " + "y" * 500}, session=session)
            await store.commit(Batch((message, first, second)))
            os.write(1, f"{message.id}\n".encode())

    committers = 1 if count <= 100 else COMMITTERS
    await asyncio.gather(*(committer() for _ in range(committers)))
    await store.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
