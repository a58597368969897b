"""A clock that stands where a test sets it."""


class FakeClock:
    def __init__(self, now_ms: int) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def boot_ms(self) -> int:
        return self.ms
