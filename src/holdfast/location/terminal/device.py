"""A pseudo-terminal: a pair of descriptors, its size, and its settings.

This process holds the program's side open too, as long as the terminal lives. So a program that closes its
own is no end of the terminal, and what was printed last can be read after the program has ended.
"""

import fcntl
import os
import struct
import termios
from typing import Final

from holdfast.errors import ContextError, InvalidInput

SIZE_MAX: Final = 10_000
ROWS, COLS = 24, 80
_IUTF8: Final = 0x4000
"""Linux: erasing a character on the line erases all of its bytes. Python has no name for it."""


class Device:
    """One pair. None of its descriptors is passed on to other programs than the terminal's own."""

    def __init__(self, rows: int, cols: int) -> None:
        check_size(rows, cols)
        try:
            self.master, self.slave = os.openpty()
        except OSError as error:
            raise ContextError(
                f"the system has no pseudo-terminal left: {error.strerror or error}"
            ) from error
        self.open = True
        os.set_blocking(self.master, False)
        settings = termios.tcgetattr(self.slave)
        if os.uname().sysname == "Linux":
            settings[0] |= _IUTF8
            termios.tcsetattr(self.slave, termios.TCSANOW, settings)
        self.resize(rows, cols)

    def resize(self, rows: int, cols: int) -> None:
        """Set the size; the program gets SIGWINCH if it is another one."""
        check_size(rows, cols)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def close(self) -> None:
        """Hang up: the program gets SIGHUP if it still runs."""
        if self.open:
            self.open = False
            os.close(self.master)
            os.close(self.slave)


def check_size(rows: int, cols: int) -> None:
    """`InvalidInput` for a size that no terminal has."""
    for what, number in (("rows", rows), ("columns", cols)):
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= SIZE_MAX:
            raise InvalidInput(f"a terminal has 1 to {SIZE_MAX:,} {what}, not {str(number)[:20]}")
