"""Every error that Holdfast raises, sorted by who must act.

    HoldfastError
    ├── CallerError            the request is wrong: the caller changes it
    │   ├── NotFound           what it names does not exist
    │   ├── Conflict           it disagrees with what is already recorded
    │   ├── InvalidInput       it does not have the right shape
    │   │   └── Ambiguous      a name stands for more than one thing
    │   └── Refused            it is not allowed now (a busy session, a missing permission)
    │       └── UndoConflict   the user has changed the same lines since
    ├── ContextError           the world around the session cannot be observed
    ├── ProviderError          the model provider failed: retry, or tell the person
    ├── StoreError             the store could not do it: the operator acts
    │   ├── StoreBusy          somebody else holds it, or it is away: try again
    │   │   └── StoreUnsure    a commit may or may not have been written: look, then try again
    │   ├── LeaseLost          another owner runs the session: stop at once
    │   ├── StoreTooNew        written by a later version: upgrade
    │   ├── StoreMissing       nothing is where a store was expected
    │   ├── StoreDamaged       its file is damaged: doctor
    │   └── RecordCorrupt      one record cannot be read: doctor
    └── InvariantBroken        our bug: report it

A message is one line: what happened, to what, and what to do next. Errors of a lower layer are translated
once, at the edge of a room, with `raise … from`. What speaks to the model (ToolFailure) is no part of this
tree. One more stands where its content does: `AnswerFailed` (`schema/message.py`), a HoldfastError that holds
an answer which ended with an error.
"""

from typing import Literal

ProviderFailure = Literal[
    "auth",
    "rate-limit",
    "overloaded",
    "context-overflow",
    "content-filter",
    "quota",
    "malformed-stream",
    "no-finish",
    "connection",
    "stall",
    "timeout",
    "unsupported",
    "other",
]
"""How a provider failed. `no-finish`: the stream ended without saying why. `stall`: it fell silent."""


class HoldfastError(Exception):
    """The root: catch it to catch everything that Holdfast raises on purpose."""


class CallerError(HoldfastError):
    """The request is wrong; repeating it unchanged cannot help."""


class NotFound(CallerError):
    """What the request names does not exist."""


class Conflict(CallerError):
    """The request disagrees with what is already recorded."""


class InvalidInput(CallerError):
    """The request, or the data that it brings, does not have the right shape."""


class Ambiguous(InvalidInput):
    """A name stands for more than one session: the first of them, and how many others there are."""

    def __init__(self, name: str, candidates: tuple[tuple[str, str, int], ...], others: int) -> None:
        # The parts are the exception's args, so that it survives pickling between processes.
        super().__init__(name, candidates, others)
        self.name = name
        self.candidates = candidates
        """The id, the title and when it was last updated, in milliseconds."""
        self.others = others

    def __str__(self) -> str:
        known = ", ".join(id for id, _, _ in self.candidates)
        more = f" and {self.others:,} more" if self.others else ""
        return f"{self.name[:60]!r} means more than one session; give more of the id: {known}{more}"


class Refused(CallerError):
    """The request is well formed but not allowed in the present state."""


class UndoConflict(Refused):
    """Files could not be put back without overwriting what the user wrote since; none was written.

    `files` has the path of each, why, and the lines (first and last, from 1) that are in the way.
    """

    def __init__(self, message: str, files: tuple[tuple[str, str, tuple[tuple[int, int], ...]], ...]) -> None:
        super().__init__(message)
        self.files = files


class ContextError(HoldfastError):
    """The world around a session (files, git, instructions) cannot be observed."""


class ProviderError(HoldfastError):
    """A model provider failed. `kind` says how, `retryable` whether the same request may succeed later.

    `status`, `headers` and `body` are the provider's answer, where there was one, with every secret taken
    out before they come here.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ProviderFailure = "other",
        retryable: bool = False,
        retry_after_ms: int | None = None,
        status: int | None = None,
        headers: dict[str, str] | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms
        self.status = status
        self.headers = headers
        self.body = body


class StoreError(HoldfastError):
    """The store could not do what was asked."""


class StoreBusy(StoreError):
    """Another process held the store for longer than we wait; the same call may succeed later."""


class StoreUnsure(StoreBusy):
    """The store was lost during a commit, which may or may not have been written: read, then repeat."""


class LeaseLost(StoreError):
    """The fence of a commit is stale, or the lease behind it may be: another owner may have the session. The
    runner must stop at once. Callers that wait for its unfinished work get this error.
    """


class StoreTooNew(StoreError):
    """The store was written in a format newer than this version reads."""


class StoreMissing(StoreError):
    """There is no store where one was expected; an empty one is never opened in its place."""


class StoreDamaged(StoreError):
    """The file of a store is damaged, so that nothing in it can be trusted to be found."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(path, what)
        self.path = path
        self.what = what

    def __str__(self) -> str:
        return f"{self.path} is damaged ({self.what}); run `holdfast doctor`, or restore a backup"


class RecordCorrupt(StoreError):
    """One record cannot be read; every other record still can."""

    def __init__(self, session: str | None, kind: str, id: str, where: str) -> None:
        # The parts are the exception's args, so that it survives pickling between processes.
        super().__init__(session, kind, id, where)
        self.session = session
        self.kind = kind
        self.id = id
        self.where = where

    def __str__(self) -> str:
        of = f" of session {self.session}" if self.session else ""
        return f"{self.kind} {self.id}{of} cannot be read: {self.where}; run `holdfast doctor`"


class InvariantBroken(HoldfastError):
    """Something that the code promises did not hold: a bug of ours, never of the caller."""
