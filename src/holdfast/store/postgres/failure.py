"""What the driver and the server raise, as errors of ours. None of them contains the URL or a password."""

import asyncio

import asyncpg

from holdfast.errors import (
    Conflict,
    HoldfastError,
    InvalidInput,
    LeaseLost,
    NotFound,
    Refused,
    StoreBusy,
    StoreError,
    StoreTooNew,
)

BY_CODE: dict[str, type[HoldfastError]] = {
    "HF001": NotFound,
    "HF002": Conflict,
    "HF003": LeaseLost,
    "HF004": Refused,
    "HF005": StoreTooNew,
}
"""The codes that our functions raise."""

AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""The transaction was undone for another one's sake, and may simply be made again."""

ATTEMPTS = 5
"""How often it is tried before the caller gets an error."""

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.CannotConnectNowError,
    # What the driver raises for a connection that the server has ended but not yet closed: the server's last
    # words have arrived, and the driver takes them for an operation that is under way.
    asyncpg.InternalClientError,
    OSError,
    asyncio.TimeoutError,
)
"""The connection is gone, or could not be had."""

WAITED = (asyncpg.QueryCanceledError, asyncpg.LockNotAvailableError)
"""The server gave up waiting, and reported it: what was asked was not done."""

READING_ONLY = (asyncpg.ReadOnlySQLTransactionError, asyncpg.InsufficientPrivilegeError)
"""The server is a standby, or the role may not write: reading goes on."""

_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InsufficientPrivilegeError)

FAILURES = (asyncpg.PostgresError, *LOST)
"""Everything that `translated` has a word for."""


def unsent(error: BaseException) -> bool:
    """Whether the connection was lost before anything was sent on it: what was asked was surely not done."""
    if isinstance(error, asyncpg.InternalClientError):
        return "cannot switch to state" in str(error)
    return isinstance(error, asyncpg.InterfaceError) and "connection is closed" in str(error)


def unsendable(error: BaseException) -> bool:
    """Whether the driver could not put a value into a message (a number or a text that no column holds)."""
    # It says so with the server's class, or with one of its own.
    ours = isinstance(error, asyncpg.DataError) and error.severity is None
    return ours or (isinstance(error, asyncpg.InterfaceError) and isinstance(error, ValueError))


def harmless(error: BaseException) -> bool:
    """Whether the connection is as it was: only after a refusal that came from the server.

    After a wait that was cancelled, or a value that could not be sent, the driver may have left a statement
    begun; after a refused BEGIN it takes every later one for a nested one.
    """
    if isinstance(error, HoldfastError):
        return True
    is_reported = isinstance(error, asyncpg.PostgresError) and error.severity is not None
    return is_reported and not isinstance(error, asyncpg.InvalidTransactionStateError)


def translated(error: BaseException, shown: str) -> HoldfastError:
    """The error of ours that this one stands for; `raise … from` it. No error leaves the store unnamed."""
    if isinstance(error, HoldfastError):
        return error
    code = getattr(error, "sqlstate", None) or ""
    if code in BY_CODE:
        return BY_CODE[code](str(error))
    if isinstance(error, WAITED):
        return StoreBusy(f"{shown} did not answer in time; try again")
    if isinstance(error, _REFUSED):
        return StoreError(
            f"{shown} refused the user ({type(error).__name__}); check the URL and the user's rights"
        )
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return StoreError(f"{shown}: there is no such database; create it first")
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return StoreBusy(
            f"{shown} only lets itself be read (a standby, or read-only by default); connect to the primary"
        )
    if unsendable(error):
        return InvalidInput(f"{shown} cannot be asked this: it holds a number or a text that no column takes")
    if isinstance(error, (*LOST, *AGAIN)):
        return StoreBusy(f"{shown} could not be reached ({type(error).__name__}); try again")
    if code[:2] in ("22", "54"):
        return InvalidInput(f"{shown} cannot hold this record ({type(error).__name__})")
    message = str(error).partition("\n")[0] if isinstance(error, asyncpg.PostgresError) else ""
    if not isinstance(error, FAILURES):
        return StoreError(f"{shown}: the driver failed in an unknown way ({type(error).__name__})")
    return StoreError(f"{shown} failed: {type(error).__name__} {code} {message}".rstrip())
