"""The tool `apply_patch`: adds, changes, moves and deletes several files, all of them or none."""

from typing import Annotated

import msgspec

from holdfast.errors import InvalidInput
from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.builtin import change as changes
from holdfast.tools.builtin import file_diff, file_text, missing_file
from holdfast.tools.builtin.access import FilesystemOf
from holdfast.tools.builtin.change import Change, Locks
from holdfast.tools.builtin.checked import Look, unchecked
from holdfast.tools.builtin.file_text import FileText
from holdfast.tools.patch.apply import Unmatched, apply
from holdfast.tools.patch.parse import parse
from holdfast.tools.patch.section import AddFile, DeleteFile, Section, UpdateFile
from holdfast.tools.replace.nearest import nearest

DESCRIPTION = """Change files with a patch: add, update, move and delete several at once, all of them or none.

*** Begin Patch
*** Add File: path
+every line of the new file
*** Update File: path
*** Move to: other path (only to move it)
@@ a line before the change, such as the head of the function
 unchanged line
-removed line
+added line
*** Delete File: path
*** End Patch

Give three unchanged lines around each change. Files that you update or delete must have been read."""


class _Planned(msgspec.Struct, frozen=True):
    """What becomes of a file by one section; a move is two changes."""

    kind: str
    changes: tuple[Change, ...]


def apply_patch_tool(filesystem_of: FilesystemOf, locks: Locks, look: Look = unchecked) -> Tool:
    """The tool, over the files that a call may reach; `look` is what happens after a change."""

    @tool(name="apply_patch", permission="edit", description=DESCRIPTION, notes_files=True)
    async def apply_patch(
        context: ToolContext,
        patchText: Annotated[str, "The patch"],  # noqa: N803 - wire
    ) -> ToolOutput:
        try:
            sections = parse(patchText)
        except InvalidInput as error:
            raise ToolFailure(f"The patch cannot be read: {error}.") from error
        filesystem = filesystem_of(context)
        targets = [await _targets(context, filesystem, section) for section in sections]
        _refuse_twice([target for each in targets for target in each])
        async with locks.of(*(target.real for each in targets for target in each)):
            pairs = zip(sections, targets, strict=True)
            planned = [await _plan(context, filesystem, *pair) for pair in pairs]
            made = [change for each in planned for change in each.changes]
            await changes.ask(context, filesystem, made, _metadata(filesystem, planned))
            await changes.write(context, made)
            checked = await look(context, filesystem, made)
        now = {each.target.real: each for each in checked.changes}
        done = [
            msgspec.structs.replace(each, changes=tuple(now[one.target.real] for one in each.changes))
            for each in planned
        ]
        said = "\n".join(_line(filesystem, each) for each in done)
        metadata = {**_metadata(filesystem, done), "diagnostics": {}, **checked.metadata}
        return ToolOutput(text=f"Done:\n{said}{checked.text}", title=said, metadata=metadata)

    return apply_patch


async def _targets(context: ToolContext, filesystem: Filesystem, section: Section) -> list[Resolved]:
    """The files that a section is about: where it is, and where it goes."""
    paths = [section.path]
    if isinstance(section, UpdateFile) and section.move is not None:
        paths.append(section.move)
    return [await changes.reach(context, filesystem, path) for path in paths]


def _refuse_twice(targets: list[Resolved]) -> None:
    seen = set()
    for target in targets:
        if target.real in seen:
            raise ToolFailure(f"The patch names {target.asked} twice. Put all its changes into one section.")
        seen.add(target.real)


async def _plan(
    context: ToolContext, filesystem: Filesystem, section: Section, targets: list[Resolved]
) -> _Planned:
    target = targets[0]
    if isinstance(section, AddFile):
        if target.kind != "missing":
            raise ToolFailure(f"{target.asked} exists already. Read it, and use '*** Update File:'.")
        data = file_text.encoded(section.text, bom=False, crlf=False)
        return _Planned("add", (await changes.change(filesystem, target, None, data),))
    if isinstance(section, DeleteFile) or len(targets) > 1:
        await changes.in_thread(_refuse_link, filesystem, section.path, target)
    if target.kind == "missing":
        raise ToolFailure(await missing_file.missing(filesystem, target))
    is_whole = isinstance(section, DeleteFile) or not section.hunks
    before = await changes.current(context, filesystem, target, whole=is_whole)
    if isinstance(section, DeleteFile):
        like = await changes.kept(target)
        return _Planned("delete", (await changes.change(filesystem, target, before, None, like=like),))
    after = await changes.in_thread(_updated, section, before)
    if len(targets) == 1:
        return _Planned("update", (await changes.change(filesystem, target, before, after),))
    if targets[1].kind != "missing":
        raise ToolFailure(f"{targets[1].asked} exists already, so {target.asked} cannot be moved there.")
    # First the new name, then the old one goes: between the two nothing is lost.
    like = await changes.kept(target)
    new = await changes.change(filesystem, targets[1], None, after, like=like)
    return _Planned("move", (new, await changes.change(filesystem, target, before, None, like=like)))


def _refuse_link(filesystem: Filesystem, path: str, target: Resolved) -> None:
    """What goes by a link would be the file that it leads to, which keeps its name where it was meant."""
    if (filesystem.root / path).is_symlink():
        raise ToolFailure(
            f"{target.asked} is a link to {target.real}. This tool neither deletes nor moves links, and "
            f"nothing was changed: name {target.real} itself, or use a command for the link."
        )


def _updated(section: UpdateFile, before: bytes) -> bytes:
    """The content with every hunk applied; `ToolFailure` names the one that does not fit."""
    if not section.hunks:
        return before
    file = FileText.of(before, section.path)
    text = apply(file.text, section.hunks)
    if isinstance(text, Unmatched):
        raise ToolFailure(_unmatched(text, file.text, section.path))
    return file.data(text)


def _unmatched(found: Unmatched, text: str, path: str) -> str:
    """Why a hunk cannot be applied, with what stands nearest to it."""
    hunk = found.hunk
    at = f"The hunk at line {hunk.line} of the patch does not fit {path}, and nothing was changed."
    where = f"behind line {found.behind}" if found.behind else "in the file"
    if found.costly:
        return (
            f"The patch takes too long to find its places in {path}: it ended at the hunk at line "
            f"{hunk.line}, and nothing was changed. Use several patches."
        )
    if found.context:
        return f"{at} There is no line {hunk.context!r} {where}. Read the file again."
    near = nearest("\n".join(text.split("\n")[found.behind :]), "\n".join(hunk.before))
    if near is None:
        return f"{at} Nothing like it stands {where}. Read the file again."
    said = [f"{at} The nearest place is line {near.line + found.behind}; there differ:"]
    for number, here, written in near.differing:
        said += [f"{number + found.behind}: {here}", f"   you wrote: {written}"]
    return "\n".join(said)


def _metadata(filesystem: Filesystem, planned: list[_Planned]) -> JsonMap:
    files: list[JsonMap] = []
    for each in planned:
        new, old = each.changes[0], each.changes[-1]
        entry: JsonMap = {
            "filePath": str(old.target.real),
            "relativePath": filesystem.relative(old.target.asked),
            "type": each.kind,
            "patch": new.diff.patch,
            "additions": new.diff.additions,
            "deletions": old.diff.deletions,
            "sha256": new.digest,
        }
        if each.kind == "move":
            entry["movePath"] = str(new.target.real)
        files.append(entry)
    return {
        "filepath": ", ".join(each["relativePath"] for each in files),
        "diff": file_diff.joined(each["patch"] for each in files),
        "files": files,
    }


def _line(filesystem: Filesystem, planned: _Planned) -> str:
    names = [filesystem.relative(each.target.asked) for each in planned.changes]
    match planned.kind:
        case "add":
            return f"A {names[0]}"
        case "delete":
            return f"D {names[0]}"
        case "move":
            return f"M {names[1]} -> {names[0]}"
        case _:
            return f"M {names[0]}"
