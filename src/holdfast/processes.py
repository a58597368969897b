"""Processes of this machine: when one began, and how a group of them is ended.

A process id alone may have been given out again; with its start time it names one process. Standard library
only: the guard process runs this with nothing else loaded.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

GRACE_S = 3.0
_POLL_S = 0.02
_ROUNDS = 10
_LOOKS, _LOOK_S = 5, 0.001
MARK = "HOLDFAST_GROUP"
"""The variable by which a process that left its group is known."""


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


def end_group(pgid: int, began: str, *, mark: str = "", grace_s: float = GRACE_S) -> bool:
    """End a group: TERM, then KILL when the grace is over. Whether there was such a group.

    `began` is the start time of its leader: a group whose number belongs to another by now is left alone. A
    leader that is gone while others of its group live cannot be told apart, and the group is ended. With a
    `mark`, processes that left the group are ended too: those that carry the mark in their environment, and
    those of the session that the leader of the group led (a shell gives each of its jobs a group).
    """
    is_ours = _is_ours(pgid, began)
    group = pgid if is_ours and is_group(pgid) else 0
    session = pgid if is_ours else 0
    if not group and not strays(mark, session):
        return False
    _signal(group, strays(mark, session), signal.SIGTERM)
    give_up = time.monotonic() + grace_s
    while (group and is_group(group)) or strays(mark, session):
        if time.monotonic() >= give_up:
            for _ in range(_ROUNDS):  # A process may fork while its parent is ended.
                _signal(group, strays(mark, session), signal.SIGKILL)
                if not strays(mark, session):
                    break
            return True
        time.sleep(_POLL_S)
    return True


def _is_ours(pgid: int, began: str) -> bool:
    """Whether a group or session of that number can only be the one that is meant."""
    if pgid <= 1 or pgid in (os.getpgrp(), os.getsid(0)):
        return False
    now = started(pgid)
    return not now or now == began


def strays(mark: str, session: int = 0) -> list[int]:
    """The processes of this user that carry a mark, or belong to a session, this one aside."""
    if not mark:
        return []
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112, PTH208
        if not name.isdigit() or (pid := int(name)) == os.getpid():
            continue
        try:
            if session and os.getsid(pid) == session and started(pid):
                found.append(pid)
                continue
            environment = _environment(name)
        except OSError:
            continue
        if wanted in environment.split(b"\0"):
            found.append(pid)
    return found


def _environment(name: str) -> bytes:
    """The variables of a process. For a moment, while another program takes its place, there are none to be
    seen: it is looked at again. A thread of the kernel and a dead process have no program.
    """
    for _ in range(_LOOKS):
        if environment := _read(f"/proc/{name}/environ"):
            return environment
        os.readlink(f"/proc/{name}/exe")  # noqa: PTH115 - as above
        time.sleep(_LOOK_S)
    return b""


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - one of hundreds
        return file.read()


def _signal(pgid: int, others: list[int], number: signal.Signals) -> None:
    if pgid:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pgid, number)
    for pid in others:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
