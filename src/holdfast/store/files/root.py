"""Opens the place of a files store: is it ours, is it new, is it another's, is it too new?

A tree of ours has a marker, `holdfast.json`. A tree without it that has content was made by OpenCode: it is
left alone unless the caller asked to adopt it. An empty store is never made where one was.
"""

import os
import secrets
from pathlib import Path

import apsw
import msgspec

from holdfast.clock import Clock
from holdfast.errors import StoreBusy, StoreError, StoreMissing, StoreTooNew
from holdfast.person.private import make_file, make_folder
from holdfast.schema import typed
from holdfast.store.base import FORMAT, Failpoint
from holdfast.store.files import layout
from holdfast.store.files.connections import behind
from holdfast.store.files.disk import Disk
from holdfast.store.files.index import Index, read_mark
from holdfast.store.files.journal import Journal
from holdfast.store.files.repair import adopt as adoption
from holdfast.store.files.repair import rebuild, recovery
from holdfast.store.files.store_lock import StoreLock
from holdfast.store.host import Host
from holdfast.store.sqlite.database import full, is_full

_OURS = frozenset(
    (*layout.FOLDERS, layout.MARKER, layout.HORIZON, layout.MIGRATION, "lock", "queue", "wake", "index.db")
)


class Marker(msgspec.Struct, frozen=True):
    """What `holdfast.json` says."""

    format: int
    incarnation: str


class Root:
    """The folder of a store and what belongs into it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = Index(path)

    def marker(self) -> Marker | None:
        """The marker, if the tree is ours; refuses a tree of a later format."""
        try:
            raw = (self.path / layout.MARKER).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            found = typed.decode(raw, Marker)
        except msgspec.MsgspecError as error:
            raise StoreError(
                f"{self.path / layout.MARKER} cannot be read ({error}); restore it from a backup"
            ) from error
        if found.format > FORMAT:
            raise StoreTooNew(
                f"{self.path} has format {found.format}, this Holdfast knows up to {FORMAT}; use a newer one"
            )
        return found

    def is_foreign(self) -> bool:
        """Whether a tree without our marker has content."""
        return any(
            (self.path / folder).is_dir() and any((self.path / folder).iterdir()) for folder in layout.SEEDS
        )

    def prepare(self, *, failpoint: Failpoint, create: bool, adopt: bool, clock: Clock, boot: str) -> None:
        """Make the store, adopt it, or bring its index up to date; refuse what must be refused."""
        marker = self.marker()
        if marker is None:
            self._refuse(create=create, adopt=adopt)
            make_folder(self.path)
        elif not os.access(self.path, os.W_OK):
            self.index.readonly = True
            self._check_readable()
            return
        try:
            self._prepare_alone(marker, failpoint, adopt=adopt, clock=clock, boot=boot)
        except (apsw.Error, StoreError, OSError) as error:
            unrelated = isinstance(error, StoreBusy | StoreMissing | StoreTooNew)
            if marker is None or unrelated or not is_full(self.index.path):
                raise
            self.index.readonly = self.index.disk_is_full = True
            try:
                self._check_readable()
            except StoreError:
                raise full(self.path) from error

    def _prepare_alone(
        self, marker: Marker | None, failpoint: Failpoint, *, adopt: bool, clock: Clock, boot: str
    ) -> None:
        lock = StoreLock(self.path)
        try:
            if marker is not None and self._is_current(boot):
                return
            with lock.exclusive():
                disk = Disk(self.path, failpoint)
                try:
                    self._prepare(disk, adopt=adopt, clock=clock, boot=boot)
                finally:
                    disk.close()
        finally:
            lock.close()

    def _refuse(self, *, create: bool, adopt: bool) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path} is a file, not a folder; name another place")
        if self.is_foreign():
            if not adopt:
                raise StoreError(
                    f"{self.path} is a JSON tree that Holdfast did not make; import it, "
                    "or take it over in place with --adopt"
                )
            return
        if adopt and adoption.has_old_layout(self.path):
            return
        unknown = (
            [] if not self.path.exists() else [p.name for p in self.path.iterdir() if not _is_ours(p.name)]
        )
        if unknown:
            raise StoreError(f"{self.path} holds other files ({unknown[0]}); name an empty folder")
        if not create:
            raise StoreMissing(f"there is no store at {self.path}")

    def _is_current(self, boot: str) -> bool:
        """The quick look of every ordinary start."""
        self._check_tree()
        if not (self.path / "wake").exists() or not self.index.is_usable():
            return False
        db = self.index.connect(readonly=True)
        disk = Disk(self.path)
        journal = Journal(disk)
        try:
            mark = read_mark(db)
            return mark.boot == boot and not journal.is_begun(mark.generation, mark.offset)
        finally:
            journal.close()
            disk.close()
            db.close()

    def _check_readable(self) -> None:
        """Whether a store that cannot be written can be read: index and tree have all of the journal."""
        self._check_tree()
        if not self.index.is_usable():
            raise behind(self.path)
        disk = Disk(self.path, readonly=True)
        try:
            journal = Journal(disk)
            try:
                db = self.index.connect(readonly=True)
                try:
                    mark = read_mark(db)
                finally:
                    db.close()
                stale = journal.generation() not in (None, mark.generation)
                if stale or journal.is_begun(mark.generation, mark.offset):
                    raise behind(self.path)
                if not recovery.is_written(disk, [entry for _, entry in journal.frames(mark.generation, 0)]):
                    raise behind(self.path)
            finally:
                journal.close()
        finally:
            disk.close()

    def _check_tree(self) -> None:
        if not (self.path / "session").is_dir():
            raise StoreMissing(
                f"the tree in {self.path} is gone although a store was here; restore a backup there, "
                f"or remove {self.path / layout.MARKER} to begin again"
            )

    def _prepare(self, disk: Disk, *, adopt: bool, clock: Clock, boot: str) -> None:
        journal = Journal(disk)
        try:
            if self.marker() is None:
                self._refuse(create=True, adopt=adopt)
                self._make(disk, journal, adopt=adopt, clock=clock, boot=boot)
            self._check_tree()
            make_file(self.index.wake_path)
            if not self.index.is_usable():
                rebuild.rebuild(self.index, disk, journal, clock=clock, boot=boot)
                return
            db = self.index.connect()
            try:
                stale = recovery.is_stale(db, journal)
                if not stale:
                    recovery.recover(db, disk, journal, clock=clock, boot=boot)
            finally:
                db.close()
            if stale:
                rebuild.rebuild(self.index, disk, journal, clock=clock, boot=boot)
        finally:
            journal.close()

    def rebuild(self, clock: Clock, host: Host) -> None:
        """Rebuild the index, alone in the store."""
        lock, disk = StoreLock(self.path), Disk(self.path)
        journal = Journal(disk)
        try:
            with lock.exclusive():
                rebuild.rebuild(self.index, disk, journal, clock=clock, boot=host.boot)
        finally:
            journal.close()
            disk.close()
            lock.close()

    def _make(self, disk: Disk, journal: Journal, *, adopt: bool, clock: Clock, boot: str) -> None:
        """A new store, or another's tree made ours; the marker comes last."""
        marker = msgspec.json.format(msgspec.json.encode(Marker(FORMAT, secrets.token_hex(8))), indent=2)
        adopting = adopt and (self.is_foreign() or adoption.has_old_layout(self.path))
        if adopting:
            adoption.prepare(self.path, disk)
        for folder in layout.FOLDERS:
            disk.make_folder(folder)
        journal.make()
        rebuild.rebuild(self.index, disk, journal, clock=clock, boot=boot, adopting=marker)
        disk.replace(layout.MIGRATION, str(adoption.MIGRATED).encode())
        disk.replace(layout.MARKER, marker)


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith(("index.db-", f"{layout.MARKER}.", f"{layout.MIGRATION}."))
