"""A pseudo-terminal for commands: a person who sees a screen and presses keys."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from tests.cli.conftest import HOLDFAST, Shell

WITHIN_S = 30.0


def _own_terminal() -> None:
    """Make standard input the controlling terminal, so that Ctrl-C is a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A command that runs on a screen of 24 lines and 80 columns."""

    def __init__(self, shell: Shell, *arguments: str, **environment: str) -> None:
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [HOLDFAST, *arguments],
            cwd=shell.folder,
            env={**shell.variables(), "TERM": "xterm", **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_own_terminal,  # noqa: PLW1509 - tests of terminals start no threads
        )
        os.close(theirs)
        self.text = ""

    def press(self, keys: str) -> None:
        """Type something."""
        os.write(self._fd, keys.encode())

    def sees(self, text: str, *, keys: str = "") -> None:
        """Read the screen until the text is there, and press keys until it is: Ctrl-C may swallow some."""
        give_up = time.monotonic() + WITHIN_S
        while text not in self.text:
            assert time.monotonic() < give_up, self.text
            self.press(keys)
            assert self._read(), f"it ended: {self.text}"

    def ends(self) -> tuple[int, str]:
        """The exit code, and everything that was on the screen."""
        give_up = time.monotonic() + WITHIN_S
        while self._read():
            assert time.monotonic() < give_up, self.text
        code = self.process.wait(timeout=WITHIN_S)
        os.close(self._fd)
        return code, self.text.replace("\r\n", "\n")

    def _read(self) -> bool:
        """Read what is there; False when the other end is closed."""
        ready, _, _ = select.select([self._fd], [], [], 0.1)
        if not ready:
            return True
        try:
            data = os.read(self._fd, 65_536)
        except OSError:  # Linux says so at the end.
            return False
        self.text += data.decode(errors="replace")
        return bool(data)
