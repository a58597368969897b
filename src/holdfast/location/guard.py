"""The owner's side of the guard: started with the first process group, given each and the deadline.

What must stay true: a group is watched before anything can happen to its owner unnoticed, so `watch` comes
right after the start of a process; a guard that died, or reads no more, is replaced by another that is given
everything again, what it was to end and had not ended among it; nobody waits for one that reads no more.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from typing import Any

COMMAND = (sys.executable, "-P", "-m", "holdfast.location.guard_process")


class Guard:
    """One guard process, for all tools of this process, or for all its terminals.

    `sleep_counts`: whether the time in which the machine sleeps counts for the deadline.
    """

    def __init__(self, *, sleep_counts: bool = True) -> None:
        self._clock = {} if sleep_counts else {"awake": True}
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: dict[int, tuple[str, str]] = {}
        self._ending: dict[int, tuple[str, str]] = {}
        """What was to be ended, until it is seen to be gone: the guard may be replaced before."""
        self._marks: set[str] = set()
        self._deadline_ms: int | None = None

    def expect(self, mark: str) -> None:
        """A process with this mark is about to be started: end it if the owner dies before `watch`."""
        self._marks.add(mark)
        self._send({"expect": mark})

    def unexpect(self, mark: str) -> None:
        """It was not started."""
        if mark in self._marks:
            self._marks.discard(mark)
            self._send({"unexpect": mark})

    def watch(self, pgid: int, began: str, mark: str = "") -> None:
        """End this group when the owner cannot any more, and with it what carries its mark."""
        self._groups[pgid] = (began, mark)
        self._ending.pop(pgid, None)  # Its number was free, so that one is gone.
        self._marks.discard(mark)
        self._send({"watch": [pgid, began, mark]})

    def forget(self, pgid: int) -> None:
        """The group has ended by itself."""
        if self._groups.pop(pgid, None) is not None:
            self._send({"forget": pgid})

    def end(self, pgid: int) -> None:
        """End the group: TERM, then KILL after 3 s, whatever becomes of its turn or of this process."""
        if (known := self._groups.pop(pgid, None)) is not None:
            self._drop_ended()
            self._ending[pgid] = known
            self._send({"end": pgid})

    def renew(self, deadline_ms: int) -> None:
        """The owner lives until then, by the clock that counts suspension, or the one that does not."""
        self._deadline_ms = deadline_ms
        if self._process is not None:
            with contextlib.suppress(OSError):  # The next group goes to a new guard, or is not started.
                self._send({"deadline": deadline_ms, **self._clock})

    def close(self, *, wait_s: float = 5.0) -> None:
        """Let the guard end what is left, and go. It does so by itself when it takes longer than `wait_s`.

        This blocks: call it in a thread where something else is to go on.
        """
        process, self._process = self._process, None
        if process is not None:
            _let_go(process)
            try:
                process.wait(timeout=wait_s)
            except subprocess.TimeoutExpired:
                _reap(process)

    def _send(self, order: dict[str, Any]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._start()
            return  # A new guard is given everything, this included.
        try:
            self._write(order)
        except OSError:
            self._start()

    def _start(self) -> None:
        if (gone := self._process) is not None:
            gone.kill()  # One that reads no more would take the end of its orders for the end of their owner.
            _let_go(gone)
            _reap(gone)
        self._process = subprocess.Popen(
            COMMAND, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )
        if self._deadline_ms is not None:
            self._write({"deadline": self._deadline_ms, **self._clock})
        for mark in self._marks:
            self._write({"expect": mark})
        self._drop_ended()
        for pgid, (began, mark) in (self._groups | self._ending).items():
            self._write({"watch": [pgid, began, mark]})
        for pgid in self._ending:
            self._write({"end": pgid})
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)

    def _drop_ended(self) -> None:
        for pgid in list(self._ending):
            try:
                os.killpg(pgid, 0)
            except ProcessLookupError:
                del self._ending[pgid]
            except PermissionError:
                continue

    def _write(self, order: dict[str, Any]) -> None:
        """Write one order, whole: each is shorter than what a pipe takes at once or not at all."""
        assert self._process is not None
        assert self._process.stdin is not None
        if self._process.stdin.write(json.dumps(order).encode() + b"\n") is None:
            raise BlockingIOError("the guard does not read its orders")


def _let_go(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()


def _reap(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a guard that is going, where no caller is held up by it."""
    if process.poll() is None:
        threading.Thread(target=process.wait, name="holdfast-guard", daemon=True).start()
