"""The namespaces of a command: users, mounts, processes, messages, and the network where it is off."""

# pathlib would cost every command 8 ms.
# ruff: noqa: PTH123

import os
from _struct import pack

from holdfast.location.box.launcher import kernel

_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41


def leave(*, network: bool, session: tuple[int, int] | None) -> None:
    """Enter namespaces of the command's own. The next child is the first process of its own."""
    if session is not None:
        users, wires = session
        kernel.enter(users, kernel.NEWUSER)
        kernel.enter(wires, kernel.NEWNET)
        kernel.unshare(kernel.NEWPID)
        return
    become_root(kernel.NEWPID | (0 if network else kernel.NEWNET))
    if not network:
        raise_loopback()


def leave_mounts() -> None:
    """Enter a namespace of mounts and one of messages, in the first process: the one that waits outside ends
    without taking them away.
    """
    kernel.unshare(kernel.NEWNS | kernel.NEWIPC)


def become_root(others: int) -> None:
    """Enter a user namespace in which this process may do everything, with other namespaces below it."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.NEWUSER | others)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        file = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        os.write(file, text.encode())
        os.close(file)


def raise_loopback() -> None:
    """A new network namespace has one device, and that is down."""
    import _socket
    import fcntl

    device = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(device.fileno(), _SET_FLAGS, pack("16sH22x", b"lo", _UP_AND_RUNNING))
    device.close()


def unreachable() -> int:
    """How often the network of this process had no route: the kernel counts each refused connection."""
    with open("/proc/self/net/snmp", encoding="utf-8") as file:
        names, values = file.readline().split(), file.readline().split()
    count = int(values[names.index("OutNoRoutes")])
    try:
        with open("/proc/self/net/snmp6", encoding="utf-8") as file:
            return count + sum(int(line.split()[1]) for line in file if line.startswith("Ip6OutNoRoutes"))
    except FileNotFoundError:  # a kernel without IPv6
        return count
