"""Another process that changes files while they are used, as fast as it can."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def racing(swap: Callable[[int], None]) -> Iterator[None]:
    """Somebody who swaps as fast as possible."""
    stop = threading.Event()

    def run() -> None:
        turn = 0
        while not stop.is_set():
            swap(turn)
            turn += 1

    racer = threading.Thread(target=run)
    racer.start()
    try:
        yield
    finally:
        stop.set()
        racer.join(60)
        assert not racer.is_alive()
