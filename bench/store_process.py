"""One of many processes on a store: `store_process.py URL SESSION COUNT` prints its commit times as JSON.

A count of 0 makes the session.
"""

import asyncio
import json
import random
import sys
import time

from content import message_puts, session_put

from holdfast.store.batch import Batch
from holdfast.store.open import open_store


async def main(url: str, session: str, count: int) -> list[float]:
    """Commit one message after the other."""
    store = await open_store(url)
    times = []
    if count == 0:
        await store.commit(Batch((session_put(session),)))
    chance = random.Random()
    for n in range(count):
        batch = Batch(message_puts(session, n, chance))
        began = time.perf_counter()
        await store.commit(batch)
        times.append(time.perf_counter() - began)
    await store.close()
    return times


print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
