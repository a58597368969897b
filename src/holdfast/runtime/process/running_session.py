"""A session that this process works on: what it is to do next, and how it is told to stop."""

import anyio

from holdfast.errors import HoldfastError
from holdfast.runtime.drain import How
from holdfast.runtime.engine.run import Run
from holdfast.runtime.user_command import UserCommand


class RunningSession:
    """A session that this process works on."""

    def __init__(self, *, force: bool) -> None:
        self.run: Run | None = None
        self.done = anyio.Event()
        self.again = False
        """Drain once more before it rests: the session was woken while it drained."""
        self.force = force
        """Continue although the outcome of the last tool call is unknown: the user resumed the session."""
        self.stop = False
        """Interrupted: drain no more. What is open is settled as interrupted."""
        self.waiting: anyio.CancelScope | None = None
        """The scope of the wait for another process that runs the session; each wait makes its own."""
        self.asked_at = 0
        """The number at which it was interrupted last: the newest of the session then, or that of another
        process's request. What was admitted later is not meant."""
        self.stopped_elsewhere = False
        """Whether the last interrupt was such a request, which is seen later than it was made."""
        self.owed = False
        """The interrupt came after a prompt that was to be worked on next."""
        self.how: How | None = None
        """How the last drain ended, if it has begun."""
        self.claimed = False
        """Whether the current drain has had the session."""
        self.error: HoldfastError | None = None
        self.command: UserCommand | None = None
        """A command of the user's own, to be run in the place of the first drain."""

    def end(self) -> None:
        """Stop after the current drain. A wake that comes later starts the session again."""
        self.owed = self.owed or self.again
        self.again, self.force, self.stop = False, False, True
        self.stopped_elsewhere = False
        if self.waiting is not None:
            self.waiting.cancel()

    def note_asked(self, number: int) -> None:
        """The last interrupt was asked for at this number."""
        self.asked_at = number
        if self.run is not None:
            self.run.asked_at = number

    def take_force(self) -> bool:
        """What the drain that begins now is told. A user who resumes later means the next one."""
        if self.stop:
            return False
        force, self.force = self.force, False
        return force

    def interrupt(self, run: Run, asked_at: int) -> None:
        """Interrupt the run for another process, by its request's number; it may be seen more than once.

        A run that was stopped here already is: what has come since was not at work when the request was made.
        """
        if asked_at > self.asked_at and self.stop == self.stopped_elsewhere:
            self.end()
            self.note_asked(asked_at)
            self.stopped_elsewhere = True
            if not run.interrupted:
                run.interrupt()
