"""Runs one hook of a plugin so that it can be let go, whatever it does.

What must stay true: a caller is never held longer than its limit, the loop can always end, and
nothing that a plugin raises escapes, an exit of the process neither. A coroutine that ignores its
cancellation is not stepped any further. A plain function cannot be stopped: it runs in a thread of its own
which does not keep the process alive, and what it does later has no effect.
"""

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any

GRACE_S = 1.0
"""How long a hook may tidy up after it was cancelled."""


class HookRun:
    """A hook at work."""

    def __init__(self, method: Callable[..., Any], *arguments: object) -> None:
        self.cut = False
        """Whether the hook has lost its chance to go on."""
        self.work: Awaitable[Any] | None = None
        """What it answered, to be awaited."""
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._guarded(method, arguments))

    async def wait(self, limit_s: float) -> BaseException | None:
        """What it raised, if anything; `TimeoutError` when it takes longer. Cancellation passes through."""
        ended = False
        try:
            await asyncio.wait({self._task}, timeout=limit_s)
            ended = self._task.done()
        finally:
            if not ended:
                self._let_go()
        if not ended:
            raise TimeoutError
        return asyncio.CancelledError("it ended itself") if self._task.cancelled() else self._task.result()

    def _let_go(self) -> None:
        """It may tidy up for a while, and then it is not stepped again. No caller waits for it."""
        self._task.cancel()
        self._loop.call_later(GRACE_S, self._cut_off)

    def _cut_off(self) -> None:
        self.cut = True
        self._task.cancel()

    async def _guarded(
        self, method: Callable[..., Any], arguments: tuple[object, ...]
    ) -> BaseException | None:
        try:
            await _Stepped(self._called(method, arguments), self)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin may raise anything
            return error
        return None

    async def _called(self, method: Callable[..., Any], arguments: tuple[object, ...]) -> None:
        plain = not inspect.iscoroutinefunction(method)
        made = await _in_thread(method, arguments) if plain else method(*arguments)
        if inspect.isawaitable(made):
            self.work = made
            await made


class _Stepped:
    """Passes everything through to a coroutine until the run is cut."""

    def __init__(self, work: Awaitable[None], run: HookRun) -> None:
        self._work = work
        self._run = run

    def __await__(self) -> Generator[Any, Any, None]:
        steps: Any = self._work.__await__()
        step = steps.__next__
        while True:
            try:
                waiting = step()
            except StopIteration:
                return
            try:
                got = yield waiting
            except BaseException as error:
                if self._run.cut:
                    self._close(steps)
                    raise
                step = _partial(steps.throw, error)
            else:
                step = _partial(steps.send, got)

    def _close(self, steps: Any) -> None:
        try:
            steps.close()
        except BaseException:  # noqa: BLE001 - it refused to end, or failed at it
            _bury(self._run.work)


def _bury(work: object) -> None:
    """Keep a coroutine that refuses to end from ever being finalised.

    Finalising would step it once more, at the latest when the interpreter ends; there, where nothing works
    any more, a loop that swallows every error would spin for ever. There are few: a plugin is called no more
    after some of them.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(work))


def _partial(function: Callable[[Any], Any], argument: Any) -> Callable[[], Any]:
    return lambda: function(argument)


def _in_thread(method: Callable[..., Any], arguments: tuple[object, ...]) -> asyncio.Future[Any]:
    """The answer of a plain function, from a thread that nothing waits for at the end."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(made: object, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(made)
        else:
            answer.set_exception(error)

    def work() -> None:
        made, error = None, None
        try:
            made = context.run(method, *arguments)
        except BaseException as raised:  # noqa: BLE001 - a thread has no other way to report it
            plain = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
            # What would stop a loop or a future is reported, and stops nothing.
            error = raised if plain else RuntimeError(f"{type(raised).__name__}: {raised}")
        with contextlib.suppress(RuntimeError):  # The loop is closed: no caller waits any more.
            loop.call_soon_threadsafe(deliver, made, error)

    threading.Thread(target=work, name="holdfast-plugin", daemon=True).start()
    return answer
