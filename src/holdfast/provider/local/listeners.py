"""Whose process listens on a port of this machine, from the kernel's own table. Only Linux has one.

Only sockets that a connection to 127.0.0.1 can reach count. Where several do, all must be one person's: which
of them would answer is not ours to guess.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTEN = "0A"
# In the table an address is hexadecimal words in the machine's own byte order; each of these reads the same
# either way, or is given in both.
REACHED = frozenset(
    {
        "00000000",  # 0.0.0.0
        "0100007F",
        "7F000001",  # 127.0.0.1
        "0" * 32,  # ::
        "0000000000000000FFFF00000100007F",
        "00000000000000000000FFFF7F000001",  # ::ffff:127.0.0.1
    }
)


def owners(port: int) -> frozenset[int] | None:
    """The users whose sockets listen there; None where the system does not say."""
    if sys.platform != "linux":
        return None
    try:
        lines = [line for table in TABLES if table.exists() for line in table.read_text("ascii").splitlines()]
    except OSError:
        return None
    return owners_in(lines, port)


def owners_in(lines: Iterable[str], port: int) -> frozenset[int]:
    """The same, from the lines of the tables."""
    found = set()
    for line in lines:
        fields = line.split()
        if len(fields) < 8 or fields[3] != LISTEN:
            continue
        address, _, hex_port = fields[1].partition(":")
        if address in REACHED and int(hex_port, 16) == port:
            found.add(int(fields[7]))
    return frozenset(found)
