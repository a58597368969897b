"""A host that lacks something: `python lesser_host.py NUMBER[:FIRST_ARGUMENT]=ERRNO... -- COMMAND...`.

The named system calls fail for the command and all that it starts, as they do where a kernel is old or a
container forbids them. Standard library only.
"""

import ctypes
import errno
import os
import struct
import sys

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
LOAD, EQUAL, GIVE, FAIL, PASS = 0x20, 0x15, 0x06, 0x50000, 0x7FFF0000


def number(name: str) -> int:
    """The number of a system call on this architecture."""
    here = os.uname().machine == "x86_64"
    numbers = {
        "unshare": (272, 97),
        "setns": (308, 268),
        "mount": (165, 40),
        "umount2": (166, 39),
        "capset": (126, 91),
        "prctl": (157, 167),
        "chdir": (80, 49),
        "fork": (56, 220),  # `clone`, which libraries use for it
        "memfd_create": (319, 279),
    }
    return numbers[name][0 if here else 1]


def install(rules: list[tuple[int, int | None, int]]) -> None:
    code = [(LOAD, 0, 0, 0)]
    for call, argument, error in rules:
        give = (GIVE, 0, 0, FAIL | error)
        if argument is None:
            code += [(EQUAL, 0, 1, call), give]
        else:
            code += [(EQUAL, 0, 4, call), (LOAD, 0, 0, 16), (EQUAL, 0, 1, argument), give, (LOAD, 0, 0, 0)]
    code.append((GIVE, 0, 0, PASS))
    buffer = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))
    program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for operation, value, other in ((38, 1, 0), (22, 2, program)):
        if libc.prctl(operation, value, other, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")


def main() -> None:
    end = sys.argv.index("--")
    rules = []
    for text in sys.argv[1:end]:
        call, _, error = text.partition("=")
        name, _, argument = call.partition(":")
        given = int(name) if name.isdigit() else number(name)
        rules.append((given, int(argument) if argument else None, getattr(errno, error)))
    install(rules)
    os.execv(sys.argv[end + 1], sys.argv[end + 1 :])


if __name__ == "__main__":
    main()
