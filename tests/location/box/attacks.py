"""Attacks on what lies outside a box, run as its command: `python attacks.py WORLD_JSON`.

Prints a JSON object: by attack `through`, or the name of the error that stopped it. Each attack is as small
as it can be and still prove its point: the same program runs without a box too, to show that it works there.
Standard library only.
"""

# An attack is a system call; pathlib hides which.
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH106, PTH108, PTH116, PTH208, PTH211

import ctypes
import errno
import fcntl
import json
import os
import resource
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
WORLD: dict[str, Any] = {}
ATTACKS: dict[str, Callable[[], object]] = {}
FAST_OPEN = 0x20000000
WAIT_S = 5.0


def attack(work: Callable[[], object]) -> Callable[[], object]:
    ATTACKS[work.__name__] = work
    return work


def checked(value: int) -> int:
    if value < 0:
        raise OSError(ctypes.get_errno(), "failed")
    return value


def outside(name: str) -> str:
    return f"{WORLD['outside']}/{name}"


def inside(name: str) -> str:
    return f"{WORLD['inside']}/{name}"


def opened(path: str, flags: int) -> None:
    os.close(os.open(path, flags))


# --- files outside


@attack
def write() -> None:
    opened(outside("file"), os.O_WRONLY)


@attack
def append() -> None:
    opened(outside("file"), os.O_WRONLY | os.O_APPEND)


@attack
def truncate() -> None:
    os.truncate(outside("file"), 0)


@attack
def truncate_by_open() -> None:
    opened(outside("file"), os.O_RDONLY | os.O_TRUNC)


@attack
def create() -> None:
    opened(outside("new"), os.O_WRONLY | os.O_CREAT)


@attack
def make_folder() -> None:
    os.mkdir(outside("folder"))


@attack
def unlink() -> None:
    os.unlink(outside("doomed"))


@attack
def rename_out() -> None:
    Path(inside("moved")).touch()
    os.rename(inside("moved"), outside("moved"))


@attack
def rename_in() -> None:
    os.rename(outside("taken"), inside("taken"))


@attack
def exchange() -> None:
    Path(inside("swapped")).touch()
    here, there = os.fsencode(inside("swapped")), os.fsencode(outside("swapped"))
    checked(libc.syscall(316 if os.uname().machine == "x86_64" else 276, -100, here, -100, there, 2))


@attack
def hard_link_in() -> None:
    os.link(outside("file"), inside("linked"))


@attack
def hard_link_out() -> None:
    Path(inside("link-source")).touch()
    os.link(inside("link-source"), outside("linked"))


@attack
def write_through_link() -> None:
    os.symlink(outside("file"), inside("out"))
    opened(inside("out"), os.O_WRONLY)


@attack
def change_mode() -> None:
    os.chmod(outside("file"), 0o666)


@attack
def change_owner() -> None:
    os.chown(outside("file"), os.geteuid(), os.getegid())


@attack
def change_time() -> None:
    os.utime(outside("file"), (1, 1))


@attack
def change_attribute() -> None:
    os.setxattr(outside("file"), "user.x", b"1")


@attack
def inherited_descriptor() -> None:
    os.write(WORLD["descriptor"], b"x")


# --- the owner's process


@attack
def owner_environment() -> None:
    Path(f"/proc/{WORLD['owner']}/environ").read_bytes()


@attack
def owner_memory() -> None:
    opened(f"/proc/{WORLD['owner']}/mem", os.O_RDWR)


@attack
def owner_root() -> None:
    os.listdir(f"/proc/{WORLD['owner']}/root")


@attack
def owner_trace() -> None:
    checked(
        libc.ptrace(0x4206, WORLD["owner"], 0, 0)
    )  # PTRACE_SEIZE: it is not stopped, and let go at our end


@attack
def owner_read_memory() -> None:
    buffer = ctypes.create_string_buffer(8)
    here = struct.pack("QQ", ctypes.addressof(buffer), 8)
    there = struct.pack("QQ", WORLD["address"], 8)
    checked(libc.process_vm_readv(WORLD["owner"], here, 1, there, 1, 0))


@attack
def owner_descriptor() -> None:
    handle = os.pidfd_open(WORLD["owner"])
    checked(libc.syscall(438, handle, 0, 0))


@attack
def owner_signal() -> None:
    os.kill(WORLD["owner"], 0)


@attack
def owner_arguments() -> None:
    Path(f"/proc/{WORLD['owner']}/cmdline").read_bytes()


@attack
def owner_descriptors() -> None:
    os.listdir(f"/proc/{WORLD['owner']}/fd")


@attack
def owner_limits() -> None:
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    resource.prlimit(WORLD["owner"], resource.RLIMIT_CORE, limits)


@attack
def first_process() -> None:
    """The init of the box: its memory has the orders, its descriptors the report."""
    opened("/proc/1/mem", os.O_RDWR)


# --- what is hidden


@attack
def read_hidden_file() -> None:
    opened(WORLD["hidden_file"], os.O_RDONLY)


@attack
def list_hidden_folder() -> None:
    os.listdir(WORLD["hidden_folder"])


@attack
def stat_in_hidden_folder() -> None:
    os.stat(f"{WORLD['hidden_folder']}/secret")


@attack
def chmod_hidden_folder() -> None:
    os.chmod(WORLD["hidden_folder"], 0o700)


@attack
def hidden_below_writable() -> None:
    opened(inside("private/secret"), os.O_RDONLY)


@attack
def environment_key() -> None:
    if "OWNER_API_KEY" not in os.environ:
        raise OSError(errno.ENOENT, "no key")


# --- the machine


@attack
def make_device() -> None:
    os.mknod(inside("disk"), 0o660 | 0o060000, os.makedev(1, 0))


@attack
def open_by_handle() -> None:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    checked(libc.name_to_handle_at(-100, os.fsencode(outside("file")), handle, ctypes.byref(mount), 0))
    at = os.open(inside("."), os.O_RDONLY)
    checked(libc.open_by_handle_at(at, handle, os.O_RDONLY))


@attack
def kernel_setting() -> None:
    opened("/proc/sys/kernel/core_pattern", os.O_WRONLY)


@attack
def make_cgroup() -> None:
    path = "/sys/fs/cgroup/holdfast-box-test"
    os.mkdir(path)
    os.rmdir(path)


@attack
def raw_disk() -> None:
    disks = [name for name in os.listdir("/sys/block") if Path(f"/dev/{name}").exists()]
    if not disks:
        raise OSError(errno.ENOENT, "no disk")
    opened(f"/dev/{disks[0]}", os.O_RDONLY)


# --- namespaces of its own


def nested(work: Callable[[], object]) -> None:
    """In a child, as another user namespace is for good. Its exit status is the error."""
    uid, gid = os.geteuid(), os.getegid()
    child = os.fork()
    if not child:
        try:
            checked(libc.unshare(0x10000000 | 0x20000))
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"0 {uid} 1"),
                ("gid_map", f"0 {gid} 1"),
            ):
                Path(f"/proc/self/{name}").write_text(text)
            work()
        except OSError as error:
            os._exit(error.errno or 255)
        except BaseException:  # noqa: BLE001 - the child must not go on
            os._exit(255)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, "failed")


def mounted(source: bytes | None, target: str, flags: int) -> None:
    checked(libc.mount(source, os.fsencode(target), None, ctypes.c_ulong(flags), None))


@attack
def nested_mount_over() -> None:
    nested(lambda: mounted(os.fsencode(inside(".")), outside("."), 4096))


@attack
def nested_unmount() -> None:
    nested(lambda: checked(libc.umount2(os.fsencode(WORLD["hidden_folder"]), 2)))


@attack
def nested_remount() -> None:
    def work() -> None:
        mounted(None, "/", 32 | 4096)
        opened(outside("file"), os.O_WRONLY)

    nested(work)


@attack
def nested_chroot() -> None:
    nested(lambda: os.chroot(inside(".")))


# --- git


@attack
def git_hook() -> None:
    opened(inside(".git/hooks/pre-commit"), os.O_WRONLY | os.O_CREAT)


@attack
def git_config() -> None:
    opened(inside(".git/config"), os.O_WRONLY | os.O_APPEND)


@attack
def git_config_by_rename() -> None:
    Path(inside(".git/config.lock")).touch()
    os.rename(inside(".git/config.lock"), inside(".git/config"))


@attack
def git_hooks_moved() -> None:
    os.rename(inside(".git/hooks"), inside(".git/hooks.old"))


@attack
def git_folder_moved() -> None:
    os.rename(inside(".git"), inside(".git.old"))


@attack
def missing_settings() -> None:
    os.makedirs(inside(".holdfast"))


# --- sockets


@attack
def named_socket() -> None:
    with socket.socket(socket.AF_UNIX) as each:
        each.connect(WORLD["socket"])


@attack
def abstract_socket() -> None:
    with socket.socket(socket.AF_UNIX) as each:
        each.connect("\0" + WORLD["abstract"])


@attack
def tcp() -> None:
    with socket.socket() as each:
        each.settimeout(WAIT_S)
        each.connect(("127.0.0.1", WORLD["port"]))


@attack
def multipath_tcp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as each:
        each.settimeout(WAIT_S)
        each.connect(("127.0.0.1", WORLD["port"]))


@attack
def fast_open() -> None:
    with socket.socket() as each:  # With a time limit it would not wait for the answer.
        each.sendto(b"x", FAST_OPEN, ("127.0.0.1", WORLD["port"]))


@attack
def udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        each.settimeout(WAIT_S)
        each.connect(("127.0.0.1", WORLD["udp_port"]))
        each.send(b"x")
        each.recv(1)  # It echoes.


@attack
def vsock() -> None:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()


@attack
def packets() -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()


# --- odd calls


@attack
def io_uring() -> None:
    os.close(checked(libc.syscall(425, 1, ctypes.create_string_buffer(120))))


@attack
def keyring() -> None:
    number = 248 if os.uname().machine == "x86_64" else 217
    checked(libc.syscall(number, b"user", b"holdfast-box-test", b"x", ctypes.c_size_t(1), -1))


@attack
def page_faults() -> None:
    number = 323 if os.uname().machine == "x86_64" else 282
    os.close(checked(libc.syscall(number, os.O_CLOEXEC)))


@attack
def performance_events() -> None:
    attributes = ctypes.create_string_buffer(struct.pack("II", 1, 128) + bytes(120))
    number = 298 if os.uname().machine == "x86_64" else 241
    os.close(checked(libc.syscall(number, attributes, 0, -1, -1, 0)))


@attack
def terminal_input() -> None:
    fcntl.ioctl(0, 0x5412, b"x")


def main() -> None:
    WORLD.update(json.loads(sys.argv[1]))
    found = {}
    for name, work in ATTACKS.items():
        try:
            work()
            found[name] = "through"
        except OSError as error:
            found[name] = errno.errorcode.get(error.errno or 0, str(error))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
