"""The seccomp filter: calls that no everyday program needs, and that reach past namespaces or into parts of
the kernel that few use. What is refused fails as on a kernel without it; no program is killed.
"""

import errno
import os
from _struct import pack

from holdfast.location.box.launcher import kernel

_SET_FILTER, _FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _GIVE = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_FAIL, _PASS = 0x50000, 0x7FFF0000
_OTHER_ABI = 0x40000000
_IO_URING = (425, 426, 427)
_UNIX, _IPV4, _IPV6, _NETLINK = 1, 2, 10, 16

# The architecture's mark, its number of `socket`, and those of: keyctl, add_key, request_key, bpf,
# perf_event_open, userfaultfd, open_by_handle_at.
_NUMBERS = {
    "x86_64": (0xC000003E, 41, (250, 248, 249, 321, 298, 323, 304)),
    "aarch64": (0xC00000B7, 198, (219, 217, 218, 280, 241, 282, 265)),
}


def restrict() -> None:
    """Filter the calls of this process and of all that it starts."""
    machine = os.uname().machine
    if machine not in _NUMBERS:
        raise OSError(errno.ENOSYS, f"no filter is known for {machine}")
    architecture, make_socket, refused = _NUMBERS[machine]
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture),  # 32-bit programs make none of these calls work.
        (_GIVE, 0, 0, _FAIL | errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _OTHER_ABI),
        (_GIVE, 0, 0, _FAIL | errno.ENOSYS),
    ]
    for number in _IO_URING:  # Programs fall back when they are told that there is none.
        steps += [(_EQUAL, 0, 1, number), (_GIVE, 0, 0, _FAIL | errno.ENOSYS)]
    for number in refused:
        steps += [(_EQUAL, 0, 1, number), (_GIVE, 0, 0, _FAIL | errno.EPERM)]
    steps += [
        (_EQUAL, 0, 6, make_socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_EQUAL, 4, 0, _UNIX),
        (_EQUAL, 3, 0, _IPV4),
        (_EQUAL, 2, 0, _IPV6),
        (_EQUAL, 1, 0, _NETLINK),
        (_GIVE, 0, 0, _FAIL | errno.EAFNOSUPPORT),
        (_GIVE, 0, 0, _PASS),
    ]
    code = kernel.Buffer(b"".join(pack("HBBI", *step) for step in steps))
    program = pack("HxxxxxxQ", len(steps), code.address)
    kernel.control(_SET_FILTER, _FILTER, program, name="seccomp")
