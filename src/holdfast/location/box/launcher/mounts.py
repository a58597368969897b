"""What the command sees of the file system: everything, read-only, but for what the orders say.

Copies of the mounts that stay as they were are taken first; then the whole tree is made read-only; then the
copies and covers are attached, shorter paths first, so that of two orders the one for the longer path holds.
What must stay true: no link is followed; a mount point is made only in a cover of ours or in the temporary
folder, never in a folder of the user's.
"""

# pathlib would cost every command 8 ms.
# ruff: noqa: PTH102, PTH103, PTH110, PTH112, PTH120

import errno
import os

from holdfast.location.box.launcher import kernel
from holdfast.location.box.launcher.cache import Cache
from holdfast.location.box.launcher.orders import Orders

_TMP = "/tmp"  # noqa: S108 - the folder itself, which is covered
_SHM = "/dev/shm"  # noqa: S108 - as above
_READ_ONLY_PROC = ("sys", "sysrq-trigger", "irq", "bus")
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)
_PLAIN = kernel.NOSUID | kernel.NODEV


class Mounts:
    """The mounts of one start, in the making."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._trees: dict[str, int] = {}
        self._guards: dict[str, int] = {}
        self._ours: list[str] = []
        """Folders in which mount points may be made."""

    def build(self, covered: list[str]) -> None:
        """Put every order in force, for this process and those that it starts. `covered`: hidden as well."""
        orders, temporary = self._orders, self._orders.temporary
        kernel.mount(None, "/", None, kernel.RECURSIVE | kernel.PRIVATE)
        if temporary is not None and _TMP not in orders.write:
            self._trees[_TMP] = kernel.clone(temporary)
        for path in (*orders.write, *([] if temporary is None else [temporary])):
            self._copy(path, self._trees)
        for path in orders.revealed:
            self._copy(path, self._trees, read_only=True)
        for path in orders.pinned:
            self._copy(path, self._guards)
        for path in orders.protected:
            self._copy(path, self._guards, read_only=True)
        hidden = [path for path in dict.fromkeys((*orders.hidden, *covered)) if is_there(path)]
        blanks = _blanks([path for path in hidden if not os.path.isdir(path)])
        caches = {path: Cache(path, upper) for path, upper in orders.caches if is_there(path)}
        root = kernel.open_path("/")
        kernel.make_read_only(root, deep=True)
        os.close(root)
        _mount_proc()
        if os.path.isdir(_SHM):
            kernel.mount("tmpfs", _SHM, "tmpfs", _PLAIN, "mode=1777")
            self._ours.append(_SHM)
        self._attach(hidden, blanks, caches)

    def _copy(self, path: str, into: dict[str, int], *, read_only: bool = False) -> None:
        try:
            tree = kernel.clone(path)
        except OSError as error:
            if error.errno in _ABSENT:
                return
            raise
        if read_only:
            kernel.make_read_only(tree, deep=True)
        into[path] = tree

    def _attach(self, hidden: list[str], blanks: dict[str, int], caches: dict[str, Cache]) -> None:
        kinds = (list(self._trees), list(caches), list(self._guards), hidden)
        # At one path a cover comes last, and so holds.
        steps = [(path, kind) for kind, paths in enumerate(kinds) for path in paths]
        covers = []
        for path, kind in sorted(steps, key=lambda step: (step[0].rstrip("/").count("/"), step[1])):
            if kind == 0:
                self._attach_tree(path, self._trees[path])
            elif not is_there(path):
                continue  # A cover of ours, or the temporary folder, is where it was.
            elif kind == 1:
                caches[path].attach()
            elif kind == 2 or path in blanks:
                kernel.attach(self._guards[path] if kind == 2 else blanks[path], path)
            else:
                inside = [each for each in self._trees if each.startswith(path + "/")]
                # A folder that may not be listed can still be passed through.
                kernel.mount("tmpfs", path, "tmpfs", _PLAIN, f"size=64k,mode={'0111' if inside else '0'}")
                covers.append(path)
                self._ours.append(path)
        for path in covers:
            at = kernel.open_path(path)
            kernel.make_read_only(at, deep=False)
            os.close(at)

    def _attach_tree(self, path: str, tree: int) -> None:
        ours = next((each for each in reversed(self._ours) if path.startswith(each + "/")), None)
        if ours is not None:
            if not is_there(path):
                make_point(path, is_folder=os.path.isdir(f"/proc/self/fd/{tree}"))
            top = ours + "/" + path[len(ours) + 1 :].partition("/")[0]
            if top != path and ours == _TMP and top not in self._ours:
                # A mount cannot be renamed; else a command could lead the next start astray by a link.
                kernel.attach(kernel.clone(top), top)
                self._ours.append(top)
        kernel.attach(tree, path)
        if path == _TMP:
            self._ours.append(path)


def is_there(path: str) -> bool:
    """Whether something stands at a path; a link on the way is an error."""
    try:
        os.close(kernel.open_path(path))
    except OSError as error:
        if error.errno in _ABSENT:
            return False
        raise
    return True


def _blanks(paths: list[str]) -> dict[str, int]:
    """For each path a mount of an empty file that nobody may open, to be put over files and sockets."""
    place = _SHM if os.path.isdir(_SHM) else _TMP
    kernel.mount("tmpfs", place, "tmpfs", _PLAIN, "size=4k")
    os.close(os.open(f"{place}/blank", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0))
    found = {}
    for path in paths:
        found[path] = kernel.clone(f"{place}/blank")
        kernel.make_read_only(found[path], deep=False)
    kernel.unmount(place)
    return found


def make_point(path: str, *, is_folder: bool) -> None:
    """Make what a mount goes on top of. Another start of the session may have made it since it was looked
    for: they share the temporary folder.
    """
    mask = os.umask(0)
    try:
        os.makedirs(os.path.dirname(path), 0o711, exist_ok=True)
        if is_folder:
            os.mkdir(path, 0o711)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        pass  # A link at its place is still not followed: `attach` opens it.
    finally:
        os.umask(mask)


def _mount_proc() -> None:
    """The processes of this box alone. A container may refuse it; then the outer ones stay, read-only."""
    try:
        kernel.mount("proc", "/proc", "proc", _PLAIN | kernel.NOEXEC)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        return
    for path in (f"/proc/{name}" for name in _READ_ONLY_PROC):
        if os.path.exists(path):
            tree = kernel.clone(path)
            kernel.make_read_only(tree, deep=True)
            kernel.attach(tree, path)
