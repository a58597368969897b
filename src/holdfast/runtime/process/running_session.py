"""One session that this process runs: what it was woken for, how it was stopped, what is left behind it."""

from typing import Self

import anyio

from holdfast.errors import HoldfastError, LeaseLost, StoreBusy
from holdfast.runtime.drain import How
from holdfast.runtime.engine.run import Run
from holdfast.runtime.process.due import CutOff, Due
from holdfast.runtime.user_command import UserCommand


class RunningSession:
    """A session that is running, or waits to be claimed."""

    def __init__(self, *, force: bool = False, answered: bool = False) -> None:
        self.again = False
        """Drain once more behind the current drain: it was woken meanwhile."""
        self.force = force
        """The next drain may go on past an unknown outcome: the user has resumed it."""
        self.answered = answered
        """A user has answered a call that waited: the next drain is due though no prompt waits."""
        self.done = anyio.Event()
        self.run: Run | None = None
        """The drain under its claim."""
        self.stop = False
        """Interrupted: drain no more. What is open is settled as interrupted."""
        self.waiting: anyio.CancelScope | None = None
        """The scope of the wait for another process that runs the session; each wait makes its own."""
        self.asked_at = 0
        """The number at which it was interrupted last: the newest of the session then, or that of another
        process's request. What was admitted later is not meant; 0 where it is not known."""
        self.stopped_elsewhere = False
        """Whether the last interrupt was such a request, which is seen later than it was made."""
        self.resumed_at = 0
        """The newest number of the session when the user resumed it last; 0 where that is not known."""
        self.owed = False
        """The interrupt came after a prompt that was to be worked on next."""
        self.claimed = False
        """Whether the current drain has had the session."""
        self.how: How | None = None
        """How the current drain ended; None while it has not."""
        self.begun = False
        """Whether the current drain has written anything."""
        self.error: HoldfastError | None = None
        self.command: UserCommand | None = None
        """A command of the user's own, to be run in the place of the first drain."""
        self._taken_force = False

    @classmethod
    def of(cls, due: Due) -> Self:
        """The run of what was left."""
        made = cls()
        if due.stop is not None:
            made.end()
            made.asked_at, made.stopped_elsewhere = due.stop, due.stopped_elsewhere
        made.again, made.force, made.answered = due.again, due.force, due.answered
        return made

    def wake(self, *, force: bool, answered: bool) -> None:
        """Drain it once more before it rests."""
        self.again = True
        self.force, self.answered = self.force or force, self.answered or answered

    def next_drain(self) -> None:
        """A drain is about to begin."""
        if not self.stop:  # Otherwise `again` is a wake after the interrupt, and stays.
            self.again = False
        self.error = self.how = None
        self.claimed = self.begun = self._taken_force = False

    def end(self) -> None:
        """Stop after the current drain. A wake that comes later starts the session again."""
        self.owed = self.owed or self.again
        self.again, self.force, self.answered, self.stop = False, False, False, True
        self.stopped_elsewhere = False
        if self.waiting is not None:
            self.waiting.cancel()

    def note_asked(self, number: int) -> None:
        """The last interrupt was asked for at this number."""
        self.asked_at = max(number, self.asked_at)
        if self.run is not None:
            self.run.asked_at = self.asked_at

    def note_resumed(self, number: int) -> bool:
        """The user resumed it at this number: whether an interrupt from before that has undone the wake."""
        self.resumed_at = max(number, self.resumed_at)
        is_undone = self.stop and not self.force and self.asked_at <= number
        if is_undone:
            self.wake(force=True, answered=False)
        return is_undone

    def take_force(self) -> bool:
        """What the drain that begins now is told. A user who resumes later means the next one."""
        if self.stop:
            return False
        self._taken_force, self.force = self.force, False
        return self._taken_force

    def interrupt(self, run: Run, asked_at: int) -> None:
        """Interrupt the run for another process, by its request's number; it may be seen more than once, or
        behind an interrupt from here that came later.
        """
        if asked_at > self.asked_at:
            is_resumed = self.force and asked_at <= self.resumed_at
            self.end()
            self.note_asked(asked_at)
            self.stopped_elsewhere = True
            if is_resumed:
                self.wake(force=True, answered=False)
            if not run.interrupted:
                run.interrupt()

    @property
    def is_settled(self) -> bool:
        """Whether the current drain has left the session in order."""
        return self.how not in (None, "abandoned", "failed")

    @property
    def is_cut_off(self) -> bool:
        """Whether the store has refused its claim, or may have given it to another owner."""
        is_lost = self.how == "abandoned" or isinstance(self.error, LeaseLost)
        return is_lost or (isinstance(self.error, StoreBusy) and not self.claimed)

    def left(self) -> Due | CutOff | None:
        """What is left to be done behind the last drain, however it ended. Pure."""
        again = Due(again=True, force=self.force, answered=self.answered) if self.again else None
        if not self.is_cut_off:
            return again  # Settled, or it failed: what comes later may find it in order.
        if self.command is not None:
            return again  # Its caller is told. As behind a crash, the next wake settles it.
        if self.stop:
            return Due(
                stop=self.asked_at,
                stopped_elsewhere=self.stopped_elsewhere,
                again=self.again,
                force=self.force,
                answered=self.answered,
            )
        if again is None and self.begun:
            return CutOff()
        force = self.force or (self._taken_force and not self.begun)
        return Due(again=True, force=force, answered=self.answered)
