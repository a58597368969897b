"""Machines that exist only in a test; the test decides when their processes die."""

from itertools import count

from holdfast.store.owner import Owner

_pids = count(1000)


class FakeHost:
    """A machine. Handles that share one see the same processes die."""

    def __init__(self, id: str = "hostA", *, boot: str = "boot1", pid_namespace: str = "pid:[1]") -> None:
        self._id = id
        self._boot = boot
        self._pid_namespace = pid_namespace
        self._gone: set[tuple[int, str]] = set()

    @property
    def id(self) -> str:
        return self._id

    @property
    def boot(self) -> str:
        return self._boot

    @property
    def pid_namespace(self) -> str:
        return self._pid_namespace

    def owner(self, id: str, *, placements: tuple[str, ...] = ("here",)) -> Owner:
        """A process of this machine that may run sessions."""
        pid = next(_pids)
        return Owner(
            id=id,
            host=self._id,
            boot=self._boot,
            pid=pid,
            pid_namespace=self._pid_namespace,
            started=f"tick{pid}",
            placements=placements,
        )

    def kill(self, owner: Owner) -> None:
        """End the owner's process, visibly to every process of this machine."""
        self._gone.add((owner.pid, owner.started))

    def is_gone(self, owner: Owner) -> bool:
        """Whether it is known here, for certain, that the owner's process no longer exists."""
        if (owner.host, owner.boot, owner.pid_namespace) != (self._id, self._boot, self._pid_namespace):
            return False
        return (owner.pid, owner.started) in self._gone
