"""Which files were read, written and deleted, from the records of calls. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import PatchPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted

PATHS_MAX: Final = 200
"""How many paths of each kind are kept: the latest."""

READING: Final = frozenset({"read"})
WRITING: Final = frozenset({"write", "edit", "multiedit", "patch", "apply_patch"})


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """Paths, the latest last. A path that was written and then deleted is in `deleted` only."""

    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no file was touched."""
        return not (self.read or self.written or self.deleted)


def ledger(before: Ledger, messages: Sequence[MessageWithParts]) -> Ledger:
    """The ledger `before`, plus the files of these messages."""
    read, written, deleted = (
        dict.fromkeys(before.read),
        dict.fromkeys(before.written),
        dict.fromkeys(before.deleted),
    )
    for message in messages:
        for kind, path in _files_of(message):
            _touch({"read": read, "written": written, "deleted": deleted}[kind], path)
            if kind == "written":
                deleted.pop(path, None)
            elif kind == "deleted":
                written.pop(path, None)
    return Ledger(read=_latest(read), written=_latest(written), deleted=_latest(deleted))


def _files_of(message: MessageWithParts) -> Iterable[tuple[str, str]]:
    """The files that a message's calls touched.

    The patch of a step names deleted files too, without saying that they are deleted; only the calls say so.
    """
    gone: set[str] = set()
    for part in message.parts:
        if isinstance(part, PatchPart):
            yield from (("written", path) for path in part.files if path not in gone)
        if not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted):
            continue
        for kind, path in _touched(part.tool.lower(), part.state.metadata):
            if kind == "deleted":
                gone.add(path)
            elif kind == "written":
                gone.discard(path)
            yield kind, path


def _touched(tool: str, metadata: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """The files a call touched, from the metadata that its tool recorded."""
    path = metadata.get("filepath")
    if isinstance(path, str) and tool in READING:
        yield "read", path
    elif isinstance(path, str) and tool in WRITING:
        yield "written", path
    files = metadata.get("files")
    for each in files if isinstance(files, list) and tool in WRITING else ():
        name = each.get("filePath") or each.get("path") if isinstance(each, dict) else each
        if isinstance(name, str):
            gone = isinstance(each, dict) and each.get("type") in ("delete", "deleted")
            yield ("deleted" if gone else "written"), name


def _touch(paths: dict[str, None], path: str) -> None:
    paths.pop(path, None)
    paths[path] = None


def _latest(paths: dict[str, None]) -> tuple[str, ...]:
    return tuple(paths)[-PATHS_MAX:]
