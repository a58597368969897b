"""The guard: a small process beside an owner that ends the tools' process groups when the owner cannot.

It reads lines of JSON from its standard input: `{"watch": [pgid, began, mark]}`, `{"forget": pgid}`,
`{"expect": mark}` before a process with a mark is started, `{"unexpect": mark}` when it was not,
`{"end": pgid}` and `{"deadline": ms}` (milliseconds since boot, suspension counted; or, with `"awake": true`,
not counted). When the input ends, its owner is dead; when the deadline passes without a later one, its owner
is paused or has lost its lease.
In both cases every watched group is ended.

What must stay true: nothing but its input and the deadline moves it; no signal to the terminal ends it.
"""

import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable

from holdfast import processes

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
LINE_BYTES_MAX = 64 * 1024


def boot_ms() -> int:
    """Milliseconds since boot, suspension counted."""
    return time.clock_gettime_ns(_BOOT) // 1_000_000


def awake_ms() -> int:
    """Milliseconds since boot, without those in which the machine was suspended."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000


class Watched:
    """The groups that live and die with the owner."""

    def __init__(self) -> None:
        self.groups: dict[int, tuple[str, str]] = {}
        self.marks: set[str] = set()
        """What was about to be started, and may have been."""
        self.deadline_ms: int | None = None
        self.now_ms: Callable[[], int] = boot_ms
        """The clock of the deadline."""

    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline_ms is not None and self.now_ms() >= self.deadline_ms

    def wait_s(self) -> float | None:
        """How long nothing can happen by itself; a paused machine may oversleep, so never for long."""
        if self.deadline_ms is None or not (self.groups or self.marks):
            return None
        return min(1.0, max(0.0, (self.deadline_ms - self.now_ms()) / 1_000))

    def obey(self, line: bytes) -> None:
        """Carry out one order; one that cannot be read is left alone."""
        try:
            order = json.loads(line)
            if "watch" in order:
                pgid, began, mark = order["watch"]
                self.groups[int(pgid)] = (str(began), str(mark))
                self.marks.discard(str(mark))
            elif "expect" in order:
                self.marks.add(str(order["expect"]))
            elif "unexpect" in order:
                self.marks.discard(str(order["unexpect"]))
            elif "forget" in order:
                self.groups.pop(int(order["forget"]), None)
            elif "end" in order:
                self.end(int(order["end"]))
            elif "deadline" in order:
                self.deadline_ms = int(order["deadline"])
                self.now_ms = awake_ms if order.get("awake") else boot_ms
        except (ValueError, TypeError, KeyError):
            return

    def end(self, pgid: int) -> None:
        """End one group, beside whatever else is to be done."""
        known = self.groups.pop(pgid, None)
        if known is not None:
            began, mark = known
            threading.Thread(target=processes.end_group, args=(pgid, began), kwargs={"mark": mark}).start()

    def end_all(self) -> None:
        """End every group."""
        for pgid in list(self.groups):
            self.end(pgid)
        for mark in self.marks:
            threading.Thread(target=_end_started, args=(mark,)).start()
        self.marks.clear()


def _end_started(mark: str) -> None:
    """End what carries the mark; it may be just about to: a process has its environment when it has begun."""
    give_up = time.monotonic() + processes.GRACE_S
    while not processes.end_group(0, "", mark=mark) and time.monotonic() < give_up:
        time.sleep(0.05)


def guard(orders: int, watched: Watched) -> None:
    """Obey orders until their input ends, and end everything then or when the owner is late."""
    rest = b""
    while True:
        ready, _, _ = select.select([orders], [], [], watched.wait_s())
        if not ready:
            # Only now: where this process was held up, a renewal that came in time is still to be read.
            if watched.is_late():
                watched.end_all()
            continue
        data = os.read(orders, LINE_BYTES_MAX)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            watched.obey(line)
        if len(rest) > LINE_BYTES_MAX:
            rest = b""
    watched.end_all()


def main() -> None:
    """Guard until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    guard(0, Watched())
    sys.exit(0)  # Waits for the threads that are still ending groups.


if __name__ == "__main__":
    main()
