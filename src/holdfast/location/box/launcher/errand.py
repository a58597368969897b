"""What a launcher that was started ahead is sent: its orders, a command, its folder and its variables."""

# pathlib would cost every command 8 ms.
# ruff: noqa: PTH123

import _signal  # type: ignore[import-not-found]
import marshal
import os
from _struct import unpack

from holdfast.location.box.launcher.orders import Orders

_DESCRIPTORS_MAX = 4


def awaited(source: int, wait_s: int) -> tuple[Orders, list[bytes], dict[bytes, bytes]]:
    """Wait for them. Without any, since the owner has ended or needs it no more, this process ends."""
    import _socket

    _signal.alarm(wait_s)  # What it does by itself is to end the process.
    place = _socket.socket(fileno=source)
    _, sent, _, _ = place.recvmsg(1, _socket.CMSG_SPACE(4 * _DESCRIPTORS_MAX))
    _signal.alarm(0)
    if not sent:
        os._exit(0)
    numbers = unpack(f"{len(sent[0][2]) // 4}i", sent[0][2])
    place.close()
    with open(numbers[0], "rb") as file:
        orders = Orders(**marshal.load(file))  # noqa: S302 - written by our own process
        folder, command, variables = marshal.load(file)  # noqa: S302 - as above
    # Here the descriptors have other numbers than in the process that wrote the orders.
    orders.report = numbers[1]
    orders.session = None if len(numbers) < _DESCRIPTORS_MAX else (numbers[2], numbers[3])
    os.chdir(folder)
    return orders, command, variables
