"""Follows a session until it rests, and lets Ctrl-C interrupt it."""

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, cast

import anyio

from holdfast.cli.complaint import Complaint, complain
from holdfast.cli.main import INTERRUPTED
from holdfast.cli.output import note
from holdfast.cli.run.interrupts import Interrupts
from holdfast.cli.run.printer import Printer
from holdfast.errors import ContextError, HoldfastError, RecordCorrupt
from holdfast.feed.frame import Frame
from holdfast.schema.part import TextPart
from holdfast.schema.request import PermissionRequest, QuestionRequest
from holdfast.schema.stored import Mark

if TYPE_CHECKING:
    from holdfast.app import Holdfast

DONE, FAILED, DENIED = 0, 1, 3
LINGER_S = 0.3
"""The last events may still be on their way when the session rests."""


async def follow(
    hf: "Holdfast",
    session: str,
    begin: Callable[[], Awaitable[object]],
    form: str,
    interrupts: Interrupts,
    *,
    idle: str | None = None,
) -> int:
    """Begin, show everything until the session is idle, and answer the exit code.

    `form` is `default`, `json` (a line an event) or `quiet`. `idle` is printed where nothing came of it.
    """
    printer = Printer(silent=form != "default")
    showing = _Showing(hf, session, printer, form)
    await showing.start()  # First: another process may end the work at any moment from here on.
    await _take_up(hf, session, printer)
    for request in await hf.sessions.requests(session):
        note(f"It waits for an answer ({_asked(request)}); `holdfast session abort {session}` ends the wait.")
    await begin()
    interrupts.session = session
    trouble: HoldfastError | None = None
    async with anyio.create_task_group() as group:

        async def rest() -> None:
            """End when no process runs the session: only the process that ran it publishes `idle`."""
            nonlocal trouble
            try:
                await hf.sessions.wait(session)
            except HoldfastError as error:
                trouble = error
            await anyio.sleep(LINGER_S)
            group.cancel_scope.cancel()

        async def interrupt() -> None:
            await interrupts.asked.wait()
            await hf.sessions.interrupt(session)

        group.start_soon(interrupt)
        group.start_soon(rest)
        try:
            await showing.show()
        except BrokenPipeError:
            interrupts.asked.set()  # The reader of our output has closed it.
            await hf.sessions.interrupt(session)
        group.cancel_scope.cancel()
    interrupts.session = None
    if trouble is None and not interrupts.asked.is_set():
        await showing.show_rest()
    printer.close()
    if trouble is not None:
        raise trouble
    if interrupts.asked.is_set():
        line = f"Interrupted. `holdfast run --session {session} …` goes on."
        _say(form, Complaint("InterruptedError", line))
        return INTERRUPTED
    if printer.error is not None:
        complain(printer.error, as_json=form != "default")
        return FAILED
    if printer.cut_off is not None:
        line = f"{printer.cut_off}; `holdfast run --session {session} …` goes on"
        _say(form, Complaint("MessageOutputLengthError", line))
        return FAILED
    if idle is not None and not printer.has_shown and not await hf.sessions.requests(session):
        note(idle)
    return DENIED if printer.denied else DONE


class _Showing:
    """What was shown of a session, and how far: nothing twice."""

    def __init__(self, hf: "Holdfast", session: str, printer: Printer, form: str) -> None:
        self._hf = hf
        self._session = session
        self._printer = printer
        self._form = form
        self._cursor = ""
        self._idle = False

    async def start(self) -> None:
        """Begin at this moment."""
        self._cursor = await self._hf.store.head()

    async def show(self) -> None:
        """Show everything, until the session says that it is idle."""
        following = self._hf.feed.follow(self._cursor, session=self._session)
        async with aclosing(cast("AsyncGenerator[list[Frame], None]", following)) as batches:
            async for frames in batches:
                self._print(frames)
                if any(frame.type == "session.idle" for frame in frames):
                    self._idle = True
                    return

    async def show_rest(self) -> None:
        """Show how the work of another process ended: that it rests may be known before its last records."""
        if not self._idle:
            self._print(await self._hf.feed.since(self._cursor, self._session))

    def _print(self, frames: list[Frame]) -> None:
        try:
            for frame in frames:
                if self._form == "json":
                    sys.stdout.buffer.write(frame.json() + b"\n")
                    sys.stdout.buffer.flush()
                self._printer.print_frame(frame)
                self._cursor = frame.cursor or self._cursor
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ContextError(f"standard output: {error.strerror or error}") from error


def _say(form: str, complaint: Complaint) -> None:
    """A note to people, an error to programs."""
    if form == "default":
        note(complaint.message)
    else:
        complain(complaint, as_json=True)


def _asked(request: PermissionRequest | QuestionRequest) -> str:
    if isinstance(request, PermissionRequest):
        return f"{request.permission}: {', '.join(request.patterns)}"
    return " ".join(each.question for each in request.questions)


async def _take_up(hf: "Holdfast", session: str, printer: Printer) -> None:
    """Texts that are open now. What a dead runner left is no news: it was shown then, and is stored; what
    is being written at this moment is shown from its beginning.
    """
    record = await hf.store.session(session)
    for part in await hf.store.select("part", session=session, mark=Mark.OPEN):
        with suppress(RecordCorrupt):  # Whatever works with it reports that.
            value = part.value()
            if isinstance(value, TextPart):
                printer.take_up(value, show=record is not None and record.busy)
