"""`python -I -S launch.pyc ROOT FD COMMAND...`: read the orders from FD, build the box, become the command.

`python -I -S launch.pyc ROOT wait FD SECONDS`: the same, ahead; orders and command come by the socket FD.

`python -I -S launch.pyc ROOT network`: make the namespaces that the commands of a session share, write a
line, and keep them until the input ends. What must stay true: everything is in force before the command
starts, or it does not start, and this ends with 125 and one line; nothing but 0, 1 and 2 is open in it.
"""

# pathlib would cost every command 8 ms.
# ruff: noqa: PTH109, PTH123

import os
import sys

FAILED = 125

# The packages above this one are empty here: to find and run theirs would cost 2 ms.
for _name in ("holdfast", "holdfast.location", "holdfast.location.box", "holdfast.location.box.launcher"):
    if _name not in sys.modules:
        sys.modules[_name] = type(sys)(_name)
        sys.modules[_name].__path__ = [f"{sys.argv[1]}/{_name.replace('.', '/')}"]

try:
    # The standard modules `signal`, `socket`, `json` and `ctypes` cost 5 to 10 ms each.
    import _signal  # type: ignore[import-not-found]
    import marshal

    from holdfast.location.box.launcher import (
        devices,
        errand,
        kernel,
        landlock,
        namespaces,
        privileges,
        seccomp,
        sockets,
        waiter,
    )
    from holdfast.location.box.launcher.mounts import Mounts
    from holdfast.location.box.launcher.orders import Orders
except Exception as _error:  # noqa: BLE001 - a broken installation runs nothing
    os.write(2, f"box: {_error}\n".encode(errors="replace"))
    os._exit(FAILED)

_CANNOT_RUN, _NOT_FOUND = 126, 127
_PRESET_IGNORED = (_signal.SIGPIPE, _signal.SIGXFSZ)


def main() -> None:
    """Do what the arguments say; whatever goes wrong, nothing runs."""
    try:
        if sys.argv[2] == "network":
            keep_network()
        command: list[str] | list[bytes] = sys.argv[3:]
        variables = None
        if sys.argv[2] == "wait":
            orders, command, variables = errand.awaited(int(sys.argv[3]), int(sys.argv[4]))
        else:
            orders = received(int(sys.argv[2]))
        confine(orders)
    except BaseException as error:  # noqa: BLE001 - fails closed
        said = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
        os.write(2, f"box: {said}\n".encode(errors="replace"))
        os._exit(FAILED)
    become(command, variables)


def received(source: int) -> Orders:
    """The orders: a file in memory, written by the owner's process before it started this one."""
    with open(source, "rb") as file:
        return Orders(**marshal.load(file))  # noqa: S302 - written by our own process


def confine(orders: Orders) -> None:
    """Put everything in force, in an order in which each step can still be made."""
    writable = [*orders.write, *(path for path, _ in orders.caches)]
    writable += [] if orders.temporary is None else [orders.temporary]
    version = landlock.abi()
    if orders.namespaces:
        here, covered = os.getcwd(), sockets.reachable([*orders.sockets, *writable])
        covered += devices.raw() if version < landlock.ABI_MIN else []
        namespaces.leave(network=orders.network, session=orders.session)
        status = waiter.enter_first()
        namespaces.leave_mounts()
        Mounts(orders).build(covered)
        waiter.enter_command(orders, status)
        os.chdir(here)  # The old one looks through the old mounts.
        writable += [] if orders.temporary is None else ["/tmp"]  # noqa: S108 - it is covered by now
    privileges.drop(is_root=orders.namespaces or os.geteuid() == 0)
    if version >= landlock.ABI_MIN:
        landlock.restrict(writable, version, tcp=orders.network or orders.namespaces)
    elif not orders.namespaces:
        raise OSError(0, "this kernel has neither namespaces for us nor Landlock")
    seccomp.restrict()
    if orders.report is not None:
        os.write(orders.report, b"ready\n")
    os.closerange(3, 4096)


def become(command: list[str] | list[bytes], variables: dict[bytes, bytes] | None) -> None:
    """Start the command in the place of this process, with its variables or with those of this process."""
    for number in _PRESET_IGNORED:  # Python ignores them, and programs inherit that.
        _signal.signal(number, _signal.SIG_DFL)
    _forget_locale()
    name = os.fsdecode(command[0])
    try:
        os.execvpe(command[0], command, os.environ if variables is None else variables)  # noqa: S606
    except FileNotFoundError:
        os.write(2, f"{name}: not found\n".encode(errors="replace"))
        os._exit(_NOT_FOUND)
    except OSError as error:
        os.write(2, f"{name}: {error.strerror}\n".encode(errors="replace"))
        os._exit(_CANNOT_RUN)


def _forget_locale() -> None:
    """Where no locale was given the interpreter has set one, which the command must not inherit."""
    if os.environ.get("LC_CTYPE") is not None:
        with open("/proc/self/environ", "rb") as file:
            if not any(entry.startswith(b"LC_CTYPE=") for entry in file.read().split(b"\0")):
                del os.environ["LC_CTYPE"]


def keep_network() -> None:
    """Hold a user and a network namespace until the owner's process has them open."""
    namespaces.become_root(kernel.NEWNET)
    namespaces.raise_loopback()
    os.write(1, b"ready\n")
    os.read(0, 1)
    os._exit(0)


if __name__ == "__main__":
    main()
