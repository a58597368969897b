"""Puts the launcher before a command, and takes its report.

The orders travel by a file in memory: the command sees the arguments of the first process inside. What the
kernel counted comes back by a pipe that the command never has.
"""

import contextlib
import marshal
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from holdfast.location.box import interpreter, leftovers
from holdfast.location.box.interpreter import encoded
from holdfast.location.box.policy import BoxPolicy
from holdfast.person.private import make_folder

FAILED = 125
_REPORT_BYTES_MAX = 4096
_OFFLINE = {"npm_config_fetch_retries": "0", "PIP_RETRIES": "0", "CARGO_NET_OFFLINE": "true"}
"""Without a network these programs would try again for a minute."""


class Report(msgspec.Struct, frozen=True):
    """What the launcher says of a command that ended."""

    ready: bool = False
    """Whether the box was built. False: the command never ran."""
    unreachable: int = 0
    """How often the network was wanted and not there."""


class Errand(msgspec.Struct, frozen=True):
    """What a launcher that was started ahead has to be told beside its orders."""

    command: Sequence[str]
    cwd: Path
    env: Mapping[str, str]


class Start:
    """One command on its way into the box."""

    def __init__(
        self,
        policy: BoxPolicy,
        prefix: list[str],
        *,
        orders: int,
        report: tuple[int, int],
        session: tuple[int, int] | None,
    ) -> None:
        self.policy = policy
        self._prefix = prefix
        self._orders = orders
        self._report, self._writes = report
        self._session = session

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that builds the box around a command."""
        return [*self._prefix, str(self._orders), *command]

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the launcher needs beside standard input and output."""
        return (self._orders, self._writes, *(self._session or ()))

    def with_errand(self, errand: Errand) -> tuple[int, ...]:
        """The descriptors for a launcher that was started ahead; the orders end with the errand by now."""
        with os.fdopen(os.dup(self._orders), "ab") as file:
            variables = {os.fsencode(name): os.fsencode(value) for name, value in errand.env.items()}
            marshal.dump((os.fsencode(errand.cwd), list(map(os.fsencode, errand.command)), variables), file)
        os.lseek(self._orders, 0, os.SEEK_SET)
        return self.descriptors

    def environment(self) -> dict[str, str]:
        """Variables that commands in this box have beside their own."""
        found = {} if self.policy.temporary is None else {"TMPDIR": self.policy.temporary}
        return found if self.policy.network else found | _OFFLINE

    def began(self) -> None:
        """The launcher runs: only it may keep the writing end, so that the report ends with it."""
        os.close(self._writes)
        self._writes = -1

    def report(self) -> Report:
        """The report, after the launcher has ended."""
        with contextlib.suppress(BlockingIOError):
            lines = os.read(self._report, _REPORT_BYTES_MAX).decode("ascii", "replace").splitlines()
            counts = [line.partition(" ")[2] for line in lines if line.startswith("unreachable ")]
            return Report("ready" in lines, sum(int(count) for count in counts if count.isdigit()))
        return Report()

    def close(self) -> None:
        """Close what is still open."""
        for number in (self._orders, self._report, self._writes):
            if number >= 0:
                os.close(number)


@contextlib.contextmanager
def prepared(
    policy: BoxPolicy,
    *,
    namespaces: bool = True,
    session: tuple[int, int] | None = None,
    python: tuple[str, ...] = (),
) -> Iterator[Start]:
    """A start of one command. `session`: the user and network namespaces that its commands share."""
    for layer in policy.caches:
        if layer.kept is not None:
            make_folder(Path(layer.kept))
            leftovers.note_use(Path(layer.kept))
    read, write = os.pipe()
    orders = os.memfd_create("holdfast-box", os.MFD_CLOEXEC)
    joined = session if namespaces and not policy.network else None
    start = Start(policy, interpreter.command(python), orders=orders, report=(read, write), session=joined)
    try:
        os.set_blocking(read, False)
        with os.fdopen(os.dup(orders), "wb") as file:
            marshal.dump(_orders(policy, write, joined, namespaces=namespaces), file)
        os.lseek(orders, 0, os.SEEK_SET)
        yield start
    finally:
        start.close()


def _orders(
    policy: BoxPolicy, report: int, session: tuple[int, int] | None, *, namespaces: bool
) -> dict[str, object]:
    """The arguments of `launcher.orders.Orders`."""
    return {
        "namespaces": namespaces,
        "network": policy.network,
        "write": _all(policy.write),
        "revealed": _all(policy.revealed),
        "hidden": _all(policy.hidden),
        "pinned": _all(policy.pinned),
        "protected": _all(policy.protected),
        "caches": [
            (encoded(layer.path), None if layer.kept is None else encoded(layer.kept))
            for layer in policy.caches
        ],
        "temporary": None if policy.temporary is None else encoded(policy.temporary),
        "sockets": _all(policy.sockets),
        "report": report,
        "session": session,
    }


def _all(paths: tuple[str, ...]) -> list[str]:
    return [encoded(path) for path in paths]
