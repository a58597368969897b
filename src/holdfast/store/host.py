"""This machine: its id, its boot, and whether a process of it is gone."""

import hashlib
import os
import sys
from functools import cached_property
from pathlib import Path
from typing import Protocol

from holdfast import processes
from holdfast.store.owner import Owner


class Host(Protocol):
    """Where a process runs, and what it can know about its neighbours."""

    @property
    def id(self) -> str: ...
    @property
    def boot(self) -> str: ...
    @property
    def pid_namespace(self) -> str: ...

    def is_gone(self, owner: Owner) -> bool:
        """Whether the owner is *provably* dead: a process of this host and boot that no longer exists."""


class ThisHost:
    """The machine this process runs on."""

    @cached_property
    def id(self) -> str:
        """An unguessable name for the machine, derived so that its real id is not given away."""
        for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
            try:
                text = Path(name).read_text("ascii").strip()
            except (OSError, ValueError):
                continue
            if text:
                break
        else:
            import uuid

            text = f"{uuid.getnode():x}"
        return hashlib.sha256(f"holdfast:{text}".encode()).hexdigest()[:24]

    @cached_property
    def boot(self) -> str:
        """The id of this boot of the kernel."""
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        except OSError:
            return _sysctl("kern.bootsessionuuid")

    @cached_property
    def pid_namespace(self) -> str:
        """The namespace in which our process ids mean something."""
        try:
            return str(Path("/proc/self/ns/pid").readlink())
        except OSError:
            return sys.platform

    def is_gone(self, owner: Owner) -> bool:
        """See `Host`. A pid that was given out again is known by its start time."""
        if (owner.host, owner.boot, owner.pid_namespace) != (self.id, self.boot, self.pid_namespace):
            return False
        try:
            os.kill(owner.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:
            pass
        return processes.started(owner.pid) != owner.started


def this_process(host: Host, *, id: str, placements: tuple[str, ...]) -> Owner:
    """The owner that this process is."""
    return Owner(
        id=id,
        host=host.id,
        boot=host.boot,
        pid=os.getpid(),
        pid_namespace=host.pid_namespace,
        started=processes.started(os.getpid()),
        placements=placements,
    )


def _sysctl(name: str) -> str:
    import subprocess

    try:
        found = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.decode("ascii", "replace").strip() or "unknown"
