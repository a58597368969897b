"""Copies a tree that opens as a store of its own: another incarnation, no claims, no index yet."""

import secrets
import shutil
from pathlib import Path

import msgspec

from holdfast.errors import StoreError
from holdfast.person.private import make_folder
from holdfast.store.files import file_format, layout
from holdfast.store.files.disk import Disk

_COPIED = tuple(
    folder for folder in layout.FOLDERS if folder not in (layout.OWNER, layout.JOURNAL, layout.QUARANTINE)
)


def copy_tree(disk: Disk, target: Path) -> None:
    """Write the copy. The caller holds the store still; what exists already is never replaced."""
    if target.exists():
        raise StoreError(f"{target} exists already; name another folder for the backup")
    if not target.absolute().parent.is_dir():
        raise StoreError(f"{target.parent} is no folder; make it, or name another")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    make_folder(draft)
    try:
        copy = Disk(draft)
        try:
            for folder in layout.FOLDERS:
                copy.make_folder(folder)
            paths = [path for folder in _COPIED for path in disk.walk(folder) if not path.endswith(".draft")]
            for path in paths:
                raw = disk.read(path)
                copy.write(path, _unclaimed(raw) if path.startswith("session/") else raw)
            marker = msgspec.json.decode(disk.read(layout.MARKER), type=dict[str, object])
            marker["incarnation"] = secrets.token_hex(8)
            copy.write(layout.MIGRATION, disk.read(layout.MIGRATION))
            if disk.exists(layout.HORIZON):
                copy.write(layout.HORIZON, disk.read(layout.HORIZON))
            copy.sync_all(lambda: [*paths, layout.MIGRATION])
            copy.replace(layout.MARKER, msgspec.json.format(msgspec.json.encode(marker), indent=2))
        finally:
            copy.close()
        if target.exists():  # A rename would replace an empty folder that another process made meanwhile.
            raise StoreError(f"{target} exists already; name another folder for the backup")
        draft.rename(target)
        above = Disk(target.parent)
        try:
            above.sync_file(".")
        finally:
            above.close()
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _unclaimed(raw: bytes) -> bytes:
    """A session's file without the name of who runs it; the number of the claim stays used."""
    if b'"owner": "' not in raw[-600:]:
        return raw
    try:
        numbers = file_format.session_numbers(raw)
        if numbers is None or numbers.claim is None:
            return raw
        free = msgspec.structs.replace(numbers, claim=file_format.Claim(None, numbers.claim.number))
        return file_format.sealed(file_format.wire(raw), free)
    except file_format.Damaged:
        return raw  # A damaged file is copied as it is.
