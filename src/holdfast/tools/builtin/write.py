"""The tool `write`: gives a file its whole content."""

from typing import Annotated

from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.builtin import change as changes
from holdfast.tools.builtin import file_text
from holdfast.tools.builtin.access import FilesystemOf
from holdfast.tools.builtin.change import Change, Locks
from holdfast.tools.builtin.checked import Look, unchecked
from holdfast.tools.builtin.file_text import FileText

DESCRIPTION = """Write a file: make a new one, or replace the whole content of one that you have read.

To change a part of a file, edit it instead. Folders on the way are made. Line ends and a byte-order mark of \
the old file are kept."""


def write_tool(filesystem_of: FilesystemOf, locks: Locks, look: Look = unchecked) -> Tool:
    """The tool, over the files that a call may reach; `look` is what happens after a change."""

    @tool(name="write", permission="edit", description=DESCRIPTION, notes_files=True)
    async def write(
        context: ToolContext,
        filePath: Annotated[str, "The path of the file, best an absolute one"],  # noqa: N803 - wire
        content: Annotated[str, "The whole content"],
    ) -> ToolOutput:
        filesystem = filesystem_of(context)
        target = await changes.reach(context, filesystem, filePath)
        async with locks.of(target.real):
            before = None
            if target.kind != "missing":
                before = await changes.current(context, filesystem, target)
            change = await changes.change(filesystem, target, before, _content(content, before, filePath))
            await changes.ask(context, filesystem, [change], _metadata(change))
            await changes.write(context, [change])
            checked = await look(context, filesystem, [change])
        (change,) = checked.changes
        return ToolOutput(
            text=_said(change) + checked.text,
            title=filesystem.relative(target.asked),
            metadata={**_metadata(change), "sha256": change.digest, "diagnostics": {}, **checked.metadata},
        )

    return write


def _content(content: str, before: bytes | None, path: str) -> bytes:
    """The new content, in the form of the old."""
    if "\0" in content:
        raise ToolFailure("The content holds a NUL character, so it is no text. Use a program to write it.")
    if before is None:
        return file_text.encoded(content, bom=False, crlf=False)
    return FileText.of(before, path).data(content)


def _metadata(change: Change) -> JsonMap:
    return {
        "filepath": str(change.target.real),
        "exists": change.before is not None,
        "diff": change.diff.patch,
    }


def _said(change: Change) -> str:
    path, found = change.target.asked, change.diff
    if change.before is None:
        return f"Made {path} ({found.additions} lines)."
    if change.before == change.after:
        return f"{path} holds exactly that already; nothing was changed."
    return f"Wrote {path}: {found.additions} lines added, {found.deletions} removed.\n\n{found.short}"
