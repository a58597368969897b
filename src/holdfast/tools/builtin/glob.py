"""The tool `glob`: finds files by their names."""

from typing import Annotated, Final

from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools import glob_pattern
from holdfast.tools.builtin import access, search
from holdfast.tools.builtin.access import Reach
from holdfast.tools.builtin.outside import UNSHOWN, Outside
from holdfast.tools.glob_pattern import BadGlob

DESCRIPTION: Final = f"""Find files by name: `*.py` at any depth, `src/**/test_*.py` from `path` on, \
`*.{{ts,tsx}}`. Answers at most {search.LIMIT} absolute paths, sorted. Files that git ignores are left \
out, and hidden ones unless the pattern names them (`.github/**`). To search inside files use grep."""


def glob_tool(reach: Reach) -> Tool:
    """The tool, over the files that a call may see."""

    @tool(name="glob", description=DESCRIPTION, repeatable=True)
    async def glob(
        context: ToolContext,
        pattern: Annotated[str, "The glob"],
        path: Annotated[str | None, "The folder to look in; without it the working directory"] = None,
    ) -> ToolOutput:
        search.check_pattern(pattern, "glob")
        filesystem, target = await reach(context, path or ".")
        wanted = _relative(pattern, target)
        if not target.readable:
            await access.ask_outside(context, filesystem, target)
        await context.ask("glob", [pattern], always=["*"], metadata={"pattern": pattern, "path": path})
        access.require(target)
        if target.kind == "file":
            raise ToolFailure(f"{target.asked} is a file. Give the folder to look in, or read the file.")
        return await _found(context, filesystem, target, wanted)

    return glob


def _relative(pattern: str, target: Resolved) -> str:
    """The pattern as seen from the folder; one that leads out of it is refused."""
    top = f"{target.asked}/"
    relative = pattern.removeprefix(top).removeprefix("./") if pattern != top else "*"
    if relative.startswith(("/", "~")) or ".." in relative.split("/"):
        raise ToolFailure(
            f"The glob leads out of {target.asked}. Give the folder as `path`, and a glob relative to it."
        )
    return relative


async def _found(context: ToolContext, filesystem: Filesystem, target: Resolved, pattern: str) -> ToolOutput:
    shows_hidden = any(name.startswith((".", "{.", "[.")) for name in pattern.split("/"))
    options = ["--files", "--null", *(search.HIDDEN if shows_hidden else ())]
    last = glob_pattern.last_name(pattern)
    if last is not None:
        # Not as `--glob`, which would bring back what git ignores.
        options += [f"--type-add=holdfast:{last}", "--type=holdfast"]
    try:
        is_meant = glob_pattern.matcher(pattern)
    except BadGlob as error:
        raise ToolFailure(f"The glob cannot be used: {error}. Write it again.") from error
    is_checked = last is None or "/" in pattern
    found: list[str] = []
    outside = Outside(context, filesystem, target)

    async def take(records: list[bytes]) -> bool:
        for record in records:
            name = record.decode("utf-8", "replace").removeprefix("./")
            # A type brings hidden files back; a name with a line end could pass for several.
            is_left_out = (not shows_hidden and "/." in f"/{name}") or not name.isprintable()
            if is_left_out or (is_checked and not is_meant(name)):
                continue
            if await outside.shows(name):
                found.append(name)
            if len(found) == search.LIMIT or outside.enough:
                return True
        return False

    ran = await search.run(context, filesystem, target, options, take, separator=b"\0")
    if ran.late and not found:
        raise ToolFailure(search.LATE)
    lines = [str(target.asked / name) for name in sorted(found)] or ["No files found"]
    if outside.unshown:
        lines += ["", UNSHOWN]
    if ran.late:
        lines += ["", search.LATE]
    elif not ran.whole and not outside.enough:
        lines += ["", f"(Only the first {search.LIMIT} that were found. Use a narrower glob or `path`.)"]
    return ToolOutput(
        text="\n".join(lines),
        title=filesystem.relative(target.asked),
        metadata={"count": len(found), "truncated": not ran.whole},
    )
