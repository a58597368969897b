"""Rebuilds the index from the tree. The caller holds the store alone.

What the journal still holds is written into the tree first. A file without numbers, or with those of another
one, is numbered after all the others; a damaged one keeps a row, so that it is missed.
"""

from collections.abc import Iterable

from holdfast.clock import Clock
from holdfast.store.files import file_format, layout
from holdfast.store.files.disk import Disk
from holdfast.store.files.index import Index, write_mark
from holdfast.store.files.journal import Journal, Mark
from holdfast.store.files.repair.absorb import Absorber, order
from holdfast.store.files.repair.number import Numbering
from holdfast.store.files.repair.recovery import write_tree


def rebuild(
    index: Index, disk: Disk, journal: Journal, *, clock: Clock, boot: str, adopting: bytes | None = None
) -> None:
    """Enter every file of the tree. `adopting` is the marker to be: numbers in files then do not count."""
    generation = journal.generation() or 0
    if adopting is None:
        write_tree(disk, [entry for _, entry in journal.frames(generation, 0)])
    db = index.empty()
    try:
        absorber = Absorber(db, clock, fresh=True)
        absorber.settings(b'{"horizon":0}')
        absorber.settings(adopting or disk.read(layout.MARKER))
        if adopting is None:
            paths = list(tree_paths(disk))
            absorber.take((path, disk.read(path)) for path in paths if order(path) < 2)
            for path in absorber.unusable:
                absorber.reserve(path)
            absorber.take((path, disk.read(path)) for path in paths if order(path) >= 2)
            _take_horizon(absorber, disk)
            unnumbered: Iterable[str] = [*absorber.unusable, *_lone_arrays(disk)]
        else:
            unnumbered = [path for path in tree_paths(disk) if not path.endswith(layout.SIDECAR)]
        absorber.unusable = []
        numbering = Numbering(db, disk)
        numbering.number(unnumbered)
        disk.replace_all(absorber.renamed | numbering.files)
        absorber.take(numbering.files.items())
        numbering.enter_damaged()
        write_mark(db, Mark(generation + 1, 0, boot))
        disk.sync_all(lambda: tree_paths(disk))
        disk.step("index commit")
        db.execute("COMMIT")
    finally:
        db.close()
    journal.clear()


def _take_horizon(absorber: Absorber, disk: Disk) -> None:
    """How far removals were forgotten; when that cannot be told, followers begin again."""
    try:
        absorber.settings(disk.read(layout.HORIZON))
    except FileNotFoundError:
        pass
    except file_format.Damaged:
        absorber.forget_removals()


def tree_paths(disk: Disk) -> Iterable[str]:
    """Every file of the tree that says something about a record, parents before their children."""
    folders = [folder for folder in layout.FOLDER.values() if folder not in ("session", "message", "part")]
    for folder in ("session", layout.SCOPE):
        yield from disk.walk(folder)
    graves = list(disk.walk(layout.TOMBSTONE))
    yield from (path for path in graves if path.count("/") == 1)
    for folder in ("message", "part", *folders, layout.OWNER):
        yield from disk.walk(folder)
    yield from (path for path in graves if path.count("/") > 1)


def _lone_arrays(disk: Disk) -> Iterable[str]:
    """Arrays that have no sidecar: another program put them there."""
    for kind in layout.ARRAYS:
        for path in disk.walk(layout.FOLDER[kind]):
            if (
                layout.place_of(path) is not None
                and not disk.exists(layout.sidecar(path))
                and disk.read(path)[:1] == b"["
            ):
                yield path
