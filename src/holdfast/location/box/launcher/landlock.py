"""Landlock, the second lock: a kernel's own list of where this process may write, whatever is mounted.

It also forbids every later mount, raw devices, signals to processes outside and abstract sockets. What it
does not know (modes, owners, named sockets, UDP) is the business of mounts and namespaces.
"""

# pathlib would cost every command 8 ms.
# ruff: noqa: PTH110, PTH112, PTH114, PTH208

import os
from _struct import pack

from holdfast.location.box.launcher import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXEC, _WRITE, _READ, _LIST = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
# Removing and making of names; device nodes (6, 11) are left out.
_CHANGE = _WRITE | _REFER | _TRUNCATE | sum(1 << bit for bit in (4, 5, 7, 8, 9, 10, 12))
_OF_FILES = _EXEC | _WRITE | _READ | _TRUNCATE | _IOCTL
_TCP = 3  # bind and connect
_SCOPES = 3  # abstract sockets and signals
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")

ABI_MIN = 2
"""Version 1 refuses every rename across folders, which git, npm and cargo do all the time."""


def abi() -> int:
    """The version that this kernel has; 0 or less for none."""
    return int(kernel.syscall(_CREATE, None, kernel.Long(0), 1))


def restrict(write: list[str], version: int, *, tcp: bool) -> None:
    """Write nowhere else from here on. `tcp`: whether TCP may be used."""
    known = (1 << 13) - 1 | _REFER | _TRUNCATE * (version >= 3) | _IOCTL * (version >= 5)
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = pack("QQQ", known, 0 if tcp else _TCP, _SCOPES)[:size]
    made = kernel.syscall(_CREATE, attributes, kernel.Long(size), 0)
    rules = kernel.checked(made, "landlock_create_ruleset")
    _allow(rules, "/", _LIST, known)
    for name in os.listdir("/"):
        if name != "dev":  # Raw disks are there.
            _allow(rules, f"/{name}", _READ | _LIST | _EXEC, known)
    _allow(rules, "/dev", _LIST, known)
    for name in _DEVICES:
        change = _CHANGE if name == "shm" else 0
        _allow(rules, f"/dev/{name}", _READ | _LIST | _WRITE | _IOCTL | _TRUNCATE | change, known)
    for path in write:
        _allow(rules, path, _CHANGE | _READ | _LIST | _EXEC, known)
    kernel.checked(kernel.syscall(_RESTRICT, rules, 0), "landlock_restrict_self")
    os.close(rules)


def _allow(rules: int, path: str, access: int, known: int) -> None:
    if not os.path.exists(path) or os.path.islink(path):
        return
    at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    access &= known if os.path.isdir(path) else known & _OF_FILES
    done = kernel.syscall(_ADD, rules, 1, pack("=Qi", access, at), 0)
    kernel.checked(done, f"landlock_add_rule {path}")
    os.close(at)
