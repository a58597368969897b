"""Processes of this machine: when one began, and how a group of them is ended.

A process id alone may have been given out again; with its start time it names one process. Standard library
only: the guard process runs this with nothing else loaded.
"""

import os
import signal
import time
from pathlib import Path

GRACE_S = 3.0
_POLL_S = 0.02


def started(pid: int) -> str:
    """The start time of a process as the kernel counts it; empty when it is gone or cannot be told."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return ""
    # The command name is in parentheses and may hold anything, so fields are counted after the last one.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def is_group(pgid: int) -> bool:
    """Whether any process of the group is left, dead ones that nobody has waited for aside."""
    try:
        os.killpg(pgid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        entries = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return True  # A system that does not say: the signal above reached somebody.
    return any(_group_of(entry) == pgid for entry in entries)


def _group_of(pid: str) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[2])


def end_group(pgid: int, began: str, *, grace_s: float = GRACE_S) -> bool:
    """End a group: TERM, then KILL when the grace is over. Whether there was such a group.

    `began` is the start time of its leader: a group whose number belongs to another by now is left alone. A
    leader that is gone while others of its group live cannot be told apart, and the group is ended.
    """
    if pgid <= 1 or pgid == os.getpgrp() or not is_group(pgid):
        return False
    if (now := started(pgid)) and now != began:
        return False
    _signal(pgid, signal.SIGTERM)
    give_up = time.monotonic() + grace_s
    while is_group(pgid):
        if time.monotonic() >= give_up:
            _signal(pgid, signal.SIGKILL)
            return True
        time.sleep(_POLL_S)
    return True


def _signal(pgid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pgid, number)
    except (ProcessLookupError, PermissionError):
        return
