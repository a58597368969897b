"""Looking at files for a source: in few threads, let go at once, and told in one line when it fails."""

import threading

import anyio
import anyio.lowlevel
import pytest

from holdfast.context.source import UNAVAILABLE
from holdfast.context.sources.look import THREADS_MAX, in_thread, look
from holdfast.errors import ContextError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ContextError("the disk is gone"), "the disk is gone"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (ValueError("two\nlines"), "two lines"),
    ],
)
async def test_what_cannot_be_looked_at_is_unavailable(error: Exception, said: str) -> None:
    """With one line about it, and without the problems met on the way."""
    warnings: list[str] = []

    def work(problems: list[str]) -> int:
        problems.append("half a look")
        raise error

    assert await look("the files", work, warnings.append) is UNAVAILABLE
    assert warnings == [f"the files cannot be looked at now, and stay as they were: {said}"]


async def test_problems_are_told_once_from_the_loop() -> None:
    """Whoever listens need not be ready for other threads."""
    here, told = threading.get_ident(), list[tuple[int, str]]()

    def work(problems: list[str]) -> int:
        problems += ["a", "b", "a"]
        assert threading.get_ident() != here
        return 3

    assert await look("x", work, lambda line: told.append((threading.get_ident(), line))) == 3
    assert told == [(here, "a"), (here, "b")]


async def test_hanging_threads_are_few() -> None:
    """A disk that does not answer holds a few threads of ours; whoever gives up waiting is let go at once."""
    hold, running = threading.Event(), threading.Semaphore(0)
    ended: list[int] = []

    def hang() -> None:
        running.release()
        assert hold.wait(60)
        ended.append(1)

    try:
        async with anyio.create_task_group() as group:
            for _ in range(THREADS_MAX + 5):
                group.start_soon(in_thread, hang)
            for _ in range(THREADS_MAX):
                while not running.acquire(blocking=False):
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert ended == []
    finally:
        hold.set()
    assert await in_thread(lambda: 3) == 3
    assert not running.acquire(blocking=False), "no more threads than the bound were begun"
