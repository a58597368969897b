"""The tool `edit`: replaces a piece of a file."""

from typing import Annotated

from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.builtin import change as changes
from holdfast.tools.builtin import file_text, missing_file
from holdfast.tools.builtin.access import FilesystemOf
from holdfast.tools.builtin.change import Change, Locks
from holdfast.tools.builtin.checked import Look, unchecked
from holdfast.tools.builtin.file_text import FileText
from holdfast.tools.replace.nearest import nearest
from holdfast.tools.replace.replace import NotReplaced, Replaced, replace

DESCRIPTION = """Replace a piece of a file that you have read.

`oldString` is the text as it stands in the file, without line numbers, with its indentation, and with \
enough lines around it that it stands there only once; `replaceAll` replaces every one. An empty \
`oldString` makes a new file of `newString`. You are shown what changed."""


def edit_tool(filesystem_of: FilesystemOf, locks: Locks, look: Look = unchecked) -> Tool:
    """The tool, over the files that a call may reach; `look` is what happens after a change."""

    @tool(name="edit", description=DESCRIPTION, notes_files=True)
    async def edit(
        context: ToolContext,
        filePath: Annotated[str, "The path of the file, best an absolute one"],  # noqa: N803 - wire
        oldString: Annotated[str, "The text to replace"],  # noqa: N803 - wire
        newString: Annotated[str, "The text in its place, which is another"],  # noqa: N803 - wire
        replaceAll: Annotated[bool, "Replace every one"] = False,  # noqa: FBT002, N803 - wire
    ) -> ToolOutput:
        if oldString == newString:
            raise ToolFailure("oldString and newString are equal, so nothing would change.")
        filesystem = filesystem_of(context)
        target = await changes.reach(context, filesystem, filePath)
        async with locks.of(target.real):
            if target.kind == "missing":
                if oldString:
                    raise ToolFailure(await missing_file.missing(filesystem, target))
                before, after = None, file_text.encoded(newString, bom=False, crlf=False)
            else:
                before = await changes.current(context, filesystem, target)
                after = await changes.in_thread(_edited, before, oldString, newString, filePath, replaceAll)
            change = await changes.change(filesystem, target, before, after)
            await changes.ask(context, filesystem, [change], _metadata(change))
            await changes.write(context, [change])
            checked = await look(context, filesystem, [change])
        (change,) = checked.changes
        file = {
            "file": filesystem.relative(target.asked),
            "patch": change.diff.patch,
            "additions": change.diff.additions,
            "deletions": change.diff.deletions,
        }
        return ToolOutput(
            text=_said(change) + checked.text,
            title=filesystem.relative(target.asked),
            metadata={
                **_metadata(change),
                "filediff": file,
                "sha256": change.digest,
                "diagnostics": {},
                **checked.metadata,
            },
        )

    return edit


def _edited(before: bytes, old: str, new: str, path: str, everywhere: bool) -> bytes:  # noqa: FBT001
    """The content with the piece replaced; `ToolFailure` says why not, and where it may have been meant."""
    if not old:
        raise ToolFailure(
            f"{path} exists, so oldString cannot be empty. Give the text to replace, or write the whole file."
        )
    file = FileText.of(before, path)
    if file.crlf:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    found = replace(file.text, old, new, everywhere=everywhere)
    if isinstance(found, Replaced):
        return file.data(found.text)
    raise ToolFailure(_why(found, file.text, old, path))


def _why(found: NotReplaced, text: str, old: str, path: str) -> str:
    lines = ", ".join(map(str, found.lines))
    if found.why == "ambiguous":
        return (
            f"oldString stands in {path} several times (lines {lines}). Give more of the text around the one "
            "that you mean, or set replaceAll."
        )
    if found.why == "too large":
        return (
            f"What is like oldString in {path} (line {lines}) is much longer than oldString. Give the text "
            "exactly as it stands there."
        )
    if found.why == "too costly":
        return (
            f"oldString does not stand in {path} as it is written, and too many lines there are somewhat "
            "like it to compare them all. Read the place that you mean again, and give a shorter oldString "
            "exactly as it stands there."
        )
    near = nearest(text, old)
    if near is None:
        return f"oldString does not stand in {path}, nor anything like it. Read the file again."
    said = [f"oldString does not stand in {path}. The nearest is at line {near.line}; there differ:"]
    for number, here, written in near.differing:
        said += [f"{number}: {here}", f"   you wrote: {written}"]
    return "\n".join([*said, "Give oldString as the file has it."])


def _metadata(change: Change) -> JsonMap:
    return {"filepath": str(change.target.real), "diff": change.diff.patch}


def _said(change: Change) -> str:
    if change.before is None:
        return f"Made {change.target.asked} ({change.diff.additions} lines)."
    return f"Edited {change.target.asked}:\n\n{change.diff.short}"
