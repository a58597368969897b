"""Which files were read, written and deleted, from the records of calls. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import PatchPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted

PATHS_MAX: Final = 200
"""How many paths of each kind are kept: the latest."""

READING: Final = frozenset({"read"})
WRITING: Final = frozenset({"write", "edit", "multiedit", "patch", "apply_patch"})

_SECTION = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): *(\S.*?) *$", re.MULTILINE)


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
        for kind, path in of_call(part) if isinstance(part, ToolPart) else ():
            if kind == "deleted":
                gone.add(path)
            elif kind == "written":
                gone.discard(path)
            yield kind, path


def of_call(part: ToolPart) -> Iterable[tuple[str, str]]:
    """The files that a call touched (read, written, deleted), from the metadata that its tool recorded."""
    if not isinstance(part.state, ToolCompleted):
        return
    tool, metadata = part.tool.lower(), part.state.metadata
    path = metadata.get("filepath")
    if isinstance(path, str) and tool in READING:
        yield "read", path
    files = metadata.get("files")
    if isinstance(path, str) and tool in WRITING and not isinstance(files, list):
        yield "written", path
    for each in files if isinstance(files, list) and tool in WRITING else ():
        name = each.get("filePath") or each.get("path") if isinstance(each, dict) else each
        if isinstance(name, str):
            gone = isinstance(each, dict) and each.get("type") in ("delete", "deleted", "move")
            yield ("deleted" if gone else "written"), name
        if isinstance(each, dict) and isinstance(each.get("movePath"), str):
            yield "written", each["movePath"]


def named_in(part: ToolPart) -> list[str]:
    """The files that a call says it will write, from its input: what is known of one that did not end."""
    if part.tool.lower() not in WRITING:
        return []
    named = part.state.input.get("filePath")
    if isinstance(named, str):
        return [named]
    patch = part.state.input.get("patchText")
    return _SECTION.findall(patch) if isinstance(patch, str) else []


def _touch(paths: dict[str, None], path: str) -> None:
    paths.pop(path, None)
    paths[path] = None


def _latest(paths: dict[str, None]) -> tuple[str, ...]:
    return tuple(paths)[-PATHS_MAX:]
