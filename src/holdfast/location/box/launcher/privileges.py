"""What a process may do as root, or become by a program with a set-user-id bit: all of it is given up."""

from _struct import pack

from holdfast.location.box.launcher import kernel

_SECURE_BITS, _DROP_BOUND, _NO_NEW = 28, 24, 38
_LOCKED = 0xEF
"""User 0 gains nothing by starting a program, no capability is inherited, and neither can be undone."""
_VERSION = 0x20080522


def drop(*, is_root: bool) -> None:
    """Keep no capability, and gain none by starting a program. `is_root`: here, or on the whole machine."""
    if is_root:  # Another user may not set these, and has nothing that they could keep.
        kernel.control(_SECURE_BITS, _LOCKED, name="securebits")
        kernel.control(_DROP_BOUND, 0, name="capability bound")
        number = 1
        while kernel.control(_DROP_BOUND, number):  # The first that fails is none.
            number += 1
    kernel.control(_NO_NEW, 1, name="no_new_privs")
    kernel.set_capabilities(pack("Ii", _VERSION, 0), bytes(24))
