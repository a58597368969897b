"""A cache of the user's, overlaid: the command reads it warm, and what it writes goes to a folder of ours.

A cache is what the user runs later (packages, hooks, tools), so a command must not write to it. One start at
a time has the folder of ours; another meanwhile writes to memory, since the kernel does not define what a
shared one does. Where there can be no overlay the cache stays read-only.
"""

import os

from holdfast.location.box.launcher import kernel

_PLAIN = kernel.NOSUID | kernel.NODEV


class Cache:
    """One overlay."""

    def __init__(self, path: str, upper: str | None) -> None:
        self.path = path
        self._lower = kernel.open_path(path)
        self._upper = None if upper is None or not _is_locked(upper) else kernel.clone(upper)

    def attach(self) -> None:
        """Mount it. What fails leaves the cache as it was, read-only."""
        try:
            self._attach_upper()
        except OSError:
            return
        try:
            self._overlay()
        except OSError:
            kernel.unmount(self.path)
        finally:
            os.close(self._lower)

    def _attach_upper(self) -> None:
        if self._upper is not None:
            kernel.attach(self._upper, self.path)
        else:
            kernel.mount("tmpfs", self.path, "tmpfs", _PLAIN, "mode=0700")

    def _overlay(self) -> None:
        at = kernel.open_path(self.path)
        own = []
        for name in ("upper", "work"):
            if not os.access(name, os.F_OK, dir_fd=at, follow_symlinks=False):
                os.mkdir(name, 0o700, dir_fd=at)
            own.append(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at))
        # By descriptor: a path may hold signs that mean something among the options.
        lower, upper, work = (f"/proc/self/fd/{number}" for number in (self._lower, *own))
        options = f"userxattr,lowerdir={lower},upperdir={upper},workdir={work}"
        try:
            kernel.mount("overlay", f"/proc/self/fd/{at}", "overlay", _PLAIN, options)
        finally:
            for number in (at, *own):
                os.close(number)


def _is_locked(folder: str) -> bool:
    """Take the folder for as long as this process lives."""
    import fcntl

    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return False
    return True
