"""Distinguishes the cancellation of a task from a `CancelledError` that a tool or plugin raised by itself.

The first must pass, or nothing could be interrupted. The second is an error like any other: let through, it
would cancel whatever runs beside it.
"""

import asyncio


def is_cancelled(error: BaseException) -> bool:
    """Whether the error is the cancellation of the task that runs this."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def ends_the_program(error: BaseException) -> bool:
    """Whether the error is meant for more than the work that it came from: a cancellation, or a real Ctrl-C.

    What a tool raises is never asked: that is the tool's failure, whatever it is.
    """
    return is_cancelled(error) or isinstance(error, (KeyboardInterrupt, SystemExit))
