"""The two processes that wait: one outside, which stands for the command, and the first one inside.

When the command ends, the first process inside ends, and the kernel ends whatever the command left running.
Signals reach the command by its process group; the grace after a TERM is the command's, so both ignore it.
"""

import _signal  # type: ignore[import-not-found]
import os

from holdfast.location.box.launcher import kernel, namespaces
from holdfast.location.box.launcher.orders import Orders

_DIE_WITH_PARENT, _DUMPABLE = 1, 4


def enter_first() -> int:
    """Return in the first process of the new namespace, with the pipe by which it names the command's status.

    The caller's process waits for that status and ends with it. It does not wait for the end of the first
    process, which takes 5 ms: the kernel takes the mounts away.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        # A leader that is killed alone must not leave the box running.
        kernel.control(_DIE_WITH_PARENT, _signal.SIGKILL, name="die with the parent")
        return write
    os.close(write)
    for number in (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM):
        _signal.signal(number, lambda *_: None)
    status = os.read(read, 1)
    os._exit(status[0] if status else _ended(child))


def enter_command(orders: Orders, status: int) -> None:
    """Return in the process that becomes the command; the first one inside waits, reports and ends."""
    counts = orders.report is not None and not orders.network
    before = namespaces.unreachable() if counts else 0
    child = os.fork()
    if not child:
        return
    kernel.control(_DUMPABLE, 0)  # The command may be of the same user: no tracing, no reading of memory.
    code = _ended(child)
    if counts and orders.report is not None:
        os.write(orders.report, b"unreachable %d\n" % (namespaces.unreachable() - before))
    os.write(status, bytes((code,)))
    os._exit(code)


def _ended(child: int) -> int:
    """The exit status of a child, as a shell would tell it. What else ends meanwhile is buried."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
