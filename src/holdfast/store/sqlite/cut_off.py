"""An exchange of a store's file that was cut off: a note tells of it from its beginning to its end.

What must stay true: such a store is never taken for one whose file is lost. While the note lies beside the
store and its file is missing, that file and its logs have their other names. The next command undoes the
exchange.
"""

import os
from pathlib import Path

import msgspec

from holdfast.errors import StoreError
from holdfast.file_lock import FileLock
from holdfast.person.private import make_file
from holdfast.store.sqlite.database import Database, sync_folder

LOGS = ("-journal", "-wal")


def named(path: Path, suffix: str) -> Path:
    """What lies beside a database under its name."""
    return path.with_name(path.name + suffix)


def write_note(database: Database, aside: Path, new: Path) -> None:
    """Say, durably, that an exchange has begun."""
    note = database.note_path
    make_file(note)
    with note.open("wb") as file:
        file.write(msgspec.json.encode({"aside": aside.name, "new": new.name}))
        file.flush()
        os.fsync(file.fileno())
    sync_folder(note.parent)


def settle(database: Database) -> None:
    """Undo an exchange that was cut off; one that another process is at is waited for."""
    if not database.note_path.exists():
        return
    try:
        lock = FileLock(database.lock_path)
        try:
            with lock:
                undo(database)
        finally:
            lock.close()
    except OSError as error:
        raise StoreError(
            f"{database.path} was being exchanged when a process was killed, and this user cannot undo that "
            f"({error.strerror or error}); run any command as one who may write {database.path.parent}"
        ) from error


def undo(database: Database) -> None:
    """Give the file and its logs their names back, unless the new file is in place. It may be cut off itself.

    The caller has the store's lock.
    """
    path, note = database.path, database.note_path
    if found := _read(note):
        aside = path.with_name(found["aside"])
        if _is_empty(path) and not _is_empty(aside):
            path.unlink()  # Of a process that would have made a store anew where the file had lost its name.
        if not path.exists():
            # The logs first, else the file could be opened without them.
            for suffix in (*LOGS, ""):
                _link(named(aside, suffix), named(path, suffix))
            sync_folder(path.parent)
            for suffix in (*LOGS, ""):
                named(aside, suffix).unlink(missing_ok=True)
        elif _is_one(path, aside):
            # The file was never away: it may have been written since, and the logs are its own. The name that
            # tells so goes last.
            for suffix in (*LOGS, ""):
                named(aside, suffix).unlink(missing_ok=True)
        else:
            # Another is in place. A log that is still here belongs to the one that was moved aside.
            for suffix in LOGS:
                if _is_one(named(path, suffix), named(aside, suffix)):
                    named(path, suffix).unlink()
        path.with_name(found["new"]).unlink(missing_ok=True)
    note.unlink(missing_ok=True)
    sync_folder(path.parent)


def _read(note: Path) -> dict[str, str]:
    """The names that it gives; none where there is half of a note: it is whole before anything is moved."""
    try:
        found = msgspec.json.decode(note.read_bytes(), type=dict[str, str])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
    names = [found.get(key, "") for key in ("aside", "new")]
    return found if all(Path(name).name == name not in ("", "..") for name in names) else {}


def _link(source: Path, target: Path) -> None:
    if not source.exists() or _is_one(source, target):
        return
    if os.path.lexists(target):
        if not _is_empty(target):
            raise StoreError(
                f"{target} lies where the log of {source} was when a process was killed; move it away, then "
                "any command brings the store back"
            )
        target.unlink()
    target.hardlink_to(source)


def _is_empty(path: Path) -> bool:
    return path.exists() and path.stat().st_size == 0


def _is_one(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return False
