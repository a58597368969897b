"""Becomes the program of a terminal: takes the terminal on standard input as its own, then runs the program.

A program of its own, since the code between fork and exec must not be Python's in a process with threads.
Standard library only, and run by path: `attach.py REPORT LC_CTYPE COMMAND [ARGUMENT…]`. It leads its session
already. `REPORT` is a descriptor that closes when the program begins; before that an errno is written to it.
`LC_CTYPE` is the variable as it was, with a sign before it, or empty where it was not set: the interpreter
may have set it for itself.
"""

import contextlib
import fcntl
import os
import signal
import sys
import termios


def main() -> None:
    """Run the program, or report why that cannot be."""
    report, ctype, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.set_inheritable(report, False)  # noqa: FBT003 - the system's own signature
    # Python ignores some signals, and whoever started this process (nohup) may have ignored others.
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):  # Those that the C library keeps for itself.
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.environ.pop("LC_CTYPE", None)
    if ctype:
        os.environ["LC_CTYPE"] = ctype[1:]
    try:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        with contextlib.suppress(OSError):  # This process's owner is gone.
            os.write(report, str(error.errno).encode())
    sys.exit(127)


if __name__ == "__main__":
    main()
