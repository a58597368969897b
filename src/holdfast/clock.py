"""The two clocks of the system, behind one port so that tests can set them.

`now_ms` is what people read (wall time; it may jump). `boot_ms` is what deadlines are measured with: it
never goes back and it goes on counting while the machine sleeps, because a lease runs out during a
suspension too. Nothing is ever *ordered* by either.
"""

import time
from typing import Protocol

# Linux: CLOCK_BOOTTIME counts suspension, CLOCK_MONOTONIC does not. macOS has no CLOCK_BOOTTIME, but there
# CLOCK_MONOTONIC counts it (which `time.monotonic` does not use).
_BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Where the time comes from."""

    def now_ms(self) -> int:
        """Wall time, in Unix milliseconds."""
        ...

    def boot_ms(self) -> int:
        """Milliseconds that never go back and include suspension; their zero means nothing."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def boot_ms(self) -> int:
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000
