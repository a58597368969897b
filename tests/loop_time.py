"""Time that passes because a test says so: a bound is reached when the test is ready for it."""

import asyncio


def let_pass(seconds: float) -> None:
    """Everything that the running loop was to do within so many seconds is due now.

    A bound that passes by itself has to be long for a machine that stalls, and short to be waited for; one
    that is let pass is long, and costs nothing. The clocks of the machine, and so leases and other processes,
    do not notice.
    """
    loop = asyncio.get_running_loop()
    time = loop.time
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]
