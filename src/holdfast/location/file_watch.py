"""Watches the files of one project, in a thread, until it is stopped.

Folder by folder: watched as a whole, a tree would be followed through its links, out of the project, and into
everything that git ignores. What must stay true: a folder that comes is watched before the old watch ends, so
that nothing is missed in between; each round publishes a bounded number of events.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from holdfast.location.watched_tree import RULES_FILE, WatchedTree

FileEvent = Literal["add", "change", "unlink"]
Publish = Callable[[list[tuple[str, FileEvent]]], None]

EVENTS_MAX: Final = 1_000
"""Of one round: a checkout of another branch changes any number of files."""
QUIET_MS: Final = 100
"""How long a round lasts at most, while changes come in one after another."""
STEP_MS: Final = 50
_LOOK_MS: Final = 5_000
_EVENTS: Final[dict[int, FileEvent]] = {1: "add", 2: "change", 3: "unlink"}


def watch(
    top: Path,
    ignore: Sequence[str],
    stop: threading.Event,
    publish: Publish,
    warn: Callable[[str], None],
) -> None:
    """Publish what changes below the top until `stop` is set. If it cannot be watched, warn, and return."""
    # The watcher without its filters and signal handlers, which are for programs of their own.
    from watchfiles._rust_notify import RustNotify

    def begin(folders: list[str]) -> RustNotify:
        return RustNotify(folders, False, False, 300, False, True)  # noqa: FBT003 - all are positional

    tree = WatchedTree(top, ignore)
    folders = _folders(tree, top, warn)
    try:
        watcher = begin(folders)
        try:
            while True:
                changes = watcher.watch(QUIET_MS, STEP_MS, _LOOK_MS, stop)
                if stop.is_set():
                    return
                if not isinstance(changes, set):
                    continue
                events = dict(_events(tree, changes))
                if _moves(changes, set(folders)):
                    known, folders = set(folders), _folders(tree, top, warn)
                    older, watcher = watcher, begin(folders)
                    older.close()
                    # They may have had files before they were watched.
                    events |= dict(_files_in(tree, [each for each in folders if each not in known]))
                publish(sorted(events.items())[:EVENTS_MAX])
        finally:
            watcher.close()
    except Exception as error:  # noqa: BLE001 - the system may have no room for another watch
        warn(f"the files of {top} are not watched: {error}")


def _folders(tree: WatchedTree, top: Path, warn: Callable[[str], None]) -> list[str]:
    folders, complete = tree.folders()
    if not complete:
        warn(f"{top} has more than {len(folders)} folders; the deeper ones are not watched")
    return folders


def _events(tree: WatchedTree, changes: set[tuple[int, str]]) -> Iterator[tuple[str, FileEvent]]:
    kinds: dict[str, set[FileEvent]] = {}
    for change, path in changes:
        kinds.setdefault(path, set()).add(_EVENTS[change])
    for path, found in kinds.items():
        # The top itself, and folders, are not files.
        if not tree.ignores(path) and not os.path.isdir(path):  # noqa: PTH112 - a text
            yield path, event(found, is_there=os.path.lexists(path))


def event(found: set[FileEvent], *, is_there: bool) -> FileEvent:
    """What became of a file to which several things happened in one round, whose order nobody knows."""
    if len(found) == 1:
        return next(iter(found))
    if not is_there and "unlink" in found:
        return "unlink"
    return "add" if "unlink" not in found else "change"


def _moves(changes: set[tuple[int, str]], known: set[str]) -> bool:
    """Whether folders have come or gone, or the rules of what is ignored have changed."""
    return any(
        path.endswith(f"/{RULES_FILE}")
        or (change == 1 and os.path.isdir(path) and not os.path.islink(path))  # noqa: PTH112, PTH114 - texts
        or (change != 1 and path in known and not os.path.isdir(path))  # noqa: PTH112 - a text
        for change, path in changes
    )


def _files_in(tree: WatchedTree, folders: Sequence[str]) -> Iterator[tuple[str, FileEvent]]:
    count = 0
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for each in entries:
                    if each.is_file(follow_symlinks=False) and not tree.ignores(each.path):
                        yield each.path, "add"
                        count += 1
                        if count == EVENTS_MAX:
                            return
        except OSError:
            continue
