"""Reads what records say from the tree, for rows that the index found."""

from holdfast.errors import RecordCorrupt
from holdfast.schema.stored import Kind
from holdfast.store.files import form, layout
from holdfast.store.files.disk import Disk
from holdfast.store.files.trace import ASIDE
from holdfast.store.record import StoredRecord
from holdfast.store.sqlite.connection import Connection

_ASIDE = ASIDE.encode()


class Content:
    """The tree as one reader sees it. The caller holds the store's lock, so that files and rows agree."""

    def __init__(self, db: Connection, disk: Disk) -> None:
        self._db = db
        self._disk = disk

    def path(self, record: StoredRecord) -> str:
        """The file of a record that the index found: there `data` tells only whether it lies aside."""
        if record.kind == "session":
            project = self._db.execute("SELECT project FROM session WHERE id=?", (record.id,)).get
            return layout.session_path(project, record.id)
        return layout.record_path(
            record.kind, record.session, record.id, record.parent, aside=record.data == _ASIDE
        )

    def load(self, record: StoredRecord) -> StoredRecord:
        """The record with its content; `RecordCorrupt` names the file that cannot be read."""
        data = self.data(self.path(record), record.kind, record.session, record.id, record.parent)
        return StoredRecord(
            record.session,
            record.kind,
            record.id,
            record.parent,
            record.position,
            record.seq,
            record.place,
            record.mark,
            data,
        )

    def data(self, path: str, kind: Kind, session: str, id: str, parent: str | None) -> bytes:
        """The stored JSON in a file."""
        try:
            return form.data_of(kind, self._disk.read(path), id=id, session=session, parent=parent)
        except (OSError, *form.Damaged) as error:
            raise self.corrupt(session, kind, id, path, error) from error

    def wire(self, path: str, kind: Kind, session: str, id: str) -> bytes:
        """The whole wire JSON in a file."""
        try:
            return form.wire(self._disk.read(path))
        except (OSError, *form.Damaged) as error:
            raise self.corrupt(session, kind, id, path, error) from error

    def corrupt(self, session: str, kind: Kind, id: str, path: str, error: Exception) -> RecordCorrupt:
        """What to raise for a file that cannot be read."""
        why = "the file is missing" if isinstance(error, FileNotFoundError) else str(error)
        return RecordCorrupt(session, kind, id, f"{self._disk.root / path}: {why}")
