"""A clock that moves only when a test moves it."""

START_MS = 1_800_000_000_000
BOOT_MS = 5_000_000


class FakeClock:
    """Both clocks of `holdfast.clock.Clock`, set by the test."""

    def __init__(self, now_ms: int = START_MS, boot_ms: int = BOOT_MS) -> None:
        self._now_ms = now_ms
        self._boot_ms = boot_ms

    def now_ms(self) -> int:
        """Wall time."""
        return self._now_ms

    def boot_ms(self) -> int:
        """Time since boot."""
        return self._boot_ms

    def advance(self, ms: int) -> None:
        """Let time pass, on both clocks."""
        assert ms >= 0, "time passes in one direction; use set_wall for a clock that was set back"
        self._now_ms += ms
        self._boot_ms += ms

    def set_wall(self, now_ms: int) -> None:
        """Set the wall clock, as a user or NTP would; the time since boot does not change."""
        self._now_ms = now_ms
