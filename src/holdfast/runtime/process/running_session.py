"""A session that this process works on: what it is to do next, and how it is told to stop."""

import anyio

from holdfast.errors import HoldfastError
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
        self.claimed = False
        """Whether the current drain has had the session."""
        self.error: HoldfastError | None = None
        self.command: UserCommand | None = None
        """A command of the user's own, to be run in the place of the first drain."""

    def end(self) -> None:
        """Stop after the current drain. A wake that comes later starts the session again."""
        self.again, self.force, self.stop = False, False, True
        if self.waiting is not None:
            self.waiting.cancel()

    def interrupt(self, run: Run) -> None:
        """Interrupt the run for another process. The request may be seen more than once."""
        if not run.interrupted:
            self.end()
            run.interrupt()
