"""Real processes on one store: started, told to begin, listened to, ended."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

ROOT = Path(__file__).parents[3]
WAIT_S = 60.0


class Worker:
    """One process; what it says is collected by a thread."""

    def __init__(self, task: str, url: str, name: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.postgres.worker", task, url, name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._said: SimpleQueue[str] = SimpleQueue()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()
        assert self.next() == "ready"

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put(line.strip())

    def next(self) -> str:
        """The next line, waited for."""
        return self._said.get(timeout=WAIT_S)

    def said(self) -> list[str]:
        """What was said since the last call."""
        found = []
        with contextlib.suppress(Empty):
            while True:
                found.append(self._said.get_nowait())
        return found

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """As `kill -9` does it."""
        self.process.kill()
        self.process.wait(WAIT_S)

    def end(self) -> None:
        """Let it finish, and see that it did so well."""
        if self.process.poll() is None:
            self.process.stdin.close()
            assert self.process.wait(WAIT_S) == 0
        self._thread.join(WAIT_S)
        self.process.stdout.close()
        with contextlib.suppress(OSError):
            self.process.stdin.close()


@contextlib.contextmanager
def workers(task: str, url: str, names: list[str]) -> Iterator[list[Worker]]:
    """Several, none of which outlives the test."""
    started: list[Worker] = []
    try:
        started.extend(Worker(task, url, name) for name in names)
        yield started
    finally:
        for each in started:
            if each.process.poll() is None:
                each.kill()
            each.end()
