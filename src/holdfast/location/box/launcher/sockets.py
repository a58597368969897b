"""Named sockets of this machine that a command could connect to. Read before a network namespace is made:
inside one the list is empty.
"""

# pathlib would cost every command 8 ms.
# ruff: noqa: PTH123

import os


def reachable(kept: list[str]) -> list[str]:
    """Real paths of sockets that this user may write to, but for kept ones and those in kept folders."""
    with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
        rows = [line.rstrip("\n").split(None, 7) for line in file]
    named = {row[7] for row in rows if len(row) == 8 and row[7].startswith("/")}
    found = {os.path.realpath(path) for path in named if os.access(path, os.W_OK)}
    return sorted(path for path in found if not is_below(path, kept))


def is_below(path: str, folders: list[str]) -> bool:
    """Whether a path is one of the folders or lies in one."""
    return any(path == each or path.startswith(each.rstrip("/") + "/") for each in folders)
