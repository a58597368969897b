"""SIGTERM and SIGHUP end a command that writes drafts as Ctrl-C does: what is half written is removed first.

The exit code tells which it was, as a shell would: 128 and the number of the signal.
"""

import signal
from types import FrameType

from holdfast.cli.main import INTERRUPTED

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_received: list[int] = []


def listen() -> None:
    """From now on; one that is ignored, as under `nohup`, stays so."""
    for each in _SIGNALS:
        if signal.getsignal(each) is signal.SIG_DFL:
            signal.signal(each, _on_signal)


def _on_signal(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does at this moment: under an event loop that is something else."""
    _received.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt  # A shell starts what runs beside it with Ctrl-C ignored.
    handler(signal.SIGINT, frame)


def finish(code: int) -> int:
    """The exit code. All is done and printed: a signal that comes now spoils nothing."""
    for each in _SIGNALS:
        if signal.getsignal(each) is _on_signal:
            signal.signal(each, signal.SIG_IGN)
    return 128 + _received[0] if _received and code == INTERRUPTED else code
