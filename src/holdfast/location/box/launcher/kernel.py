"""System calls that Python 3.11 has no function for. Each raises `OSError` that names what was tried.

They are made with the types below `ctypes`, as `ctypes` itself does: to import that costs 5 ms.
"""

import _ctypes
import os
from _struct import pack


class Long(_ctypes._SimpleCData):  # type: ignore[type-arg] # noqa: SLF001 - as `ctypes` has it
    """A number as wide as a register: a plain one is passed as an `int` of C."""

    _type_ = "l"


class _Byte(_ctypes._SimpleCData):  # type: ignore[type-arg] # noqa: SLF001 - as above
    _type_ = "c"


class _Int(_ctypes._SimpleCData):  # type: ignore[type-arg] # noqa: SLF001 - as above
    _type_ = "i"


class _Function(_ctypes.CFuncPtr):
    """A function that gives an `int`: read as a wider number its -1 would be none."""

    _flags_ = 1 | 8  # the calling convention of C, and errno kept apart for us
    _restype_ = _Int


class _Call(_ctypes.CFuncPtr):
    _flags_ = 1 | 8
    _restype_ = Long


_library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # None: what is loaded already


def _function(name: str) -> _Function:
    return _Function(_ctypes.dlsym(_library, name))


syscall = _Call(_ctypes.dlsym(_library, "syscall"))
_unshare, _setns, _prctl, _mount, _umount, _capset = map(
    _function, ("unshare", "setns", "prctl", "mount", "umount2", "capset")
)

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
NOSUID, NODEV, NOEXEC, RECURSIVE, PRIVATE = 2, 4, 8, 16384, 1 << 18
READ_ONLY = 1

_HERE, _NO_LINKS, _PATH = -100, 0x04, os.O_PATH | os.O_CLOEXEC
_EMPTY_PATH, _DEEP, _CLONE = 0x1000, 0x8000, 1
# These numbers are the same on every architecture.
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442


def checked(value: int, what: str) -> int:
    """The value, unless it says that the call failed."""
    if value < 0:
        number = _ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return value


def unshare(flags: int) -> None:
    """Leave the namespaces of the parent."""
    checked(_unshare(flags), "unshare")


def enter(namespace: int, kind: int) -> None:
    """Join a namespace that a file descriptor names."""
    checked(_setns(namespace, kind), "setns")


def control(operation: int, value: object = 0, other: object = 0, *, name: str | None = None) -> bool:
    """A `prctl`; one without a name may fail, and says whether it did not."""
    done = _prctl(operation, value, other, 0, 0)
    if name is not None:
        checked(done, name)
    return bool(done == 0)


def open_path(path: str) -> int:
    """A descriptor of what stands at a path, without following a single link."""
    how = pack("QQQ", _PATH, 0, _NO_LINKS)
    return checked(syscall(_OPENAT2, _HERE, os.fsencode(path), how, Long(len(how))), path)


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str = "") -> None:
    """The classic mount call."""
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    checked(_mount(*texts[:3], Long(flags), texts[3]), f"mount {target}")


def unmount(target: str) -> None:
    """Take away the mount on top of a path, also where it is in use."""
    checked(_umount(os.fsencode(target), 2), f"umount {target}")


def clone(path: str) -> int:
    """A copy of the mounts at and below a path, attached nowhere yet."""
    at = open_path(path)
    try:
        flags = _CLONE | os.O_CLOEXEC | _DEEP | _EMPTY_PATH
        return checked(syscall(_OPEN_TREE, at, b"", flags), f"clone {path}")
    finally:
        os.close(at)


def attach(tree: int, path: str) -> None:
    """Put a copy of mounts on top of a path."""
    at = open_path(path)
    try:
        checked(syscall(_MOVE_MOUNT, tree, b"", at, b"", 0x04 | 0x40), f"attach {path}")
    finally:
        os.close(at)
        os.close(tree)


def make_read_only(tree: int, *, deep: bool) -> None:
    """No change goes through this mount, be it of content, mode, owner, time or attributes."""
    flags = _EMPTY_PATH | (_DEEP if deep else 0)
    wanted = pack("QQQQ", READ_ONLY, 0, 0, 0)
    done = syscall(_MOUNT_SETATTR, tree, b"", flags, wanted, Long(len(wanted)))
    checked(done, "read-only")


def set_capabilities(header: bytes, sets: bytes) -> None:
    """Replace the capabilities of this process."""
    checked(_capset(header, sets), "capset")


class Buffer:
    """Bytes at an address that stays."""

    def __init__(self, content: bytes) -> None:
        self._kept = (_Byte * len(content)).from_buffer_copy(content)
        self.address = _ctypes.addressof(self._kept)
