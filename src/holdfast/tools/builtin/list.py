"""The tool `list`: a folder as a tree, the least deep entries first."""

from typing import Annotated, Final

from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.builtin import access, search
from holdfast.tools.builtin.access import Reach
from holdfast.tools.builtin.outside import UNSHOWN, Outside

ENTRIES_MAX: Final = 200
FILES_MAX: Final = 20_000
"""How many files are looked at."""

DESCRIPTION: Final = f"""Show a folder as a tree of at most {ENTRIES_MAX} entries, without what git ignores. \
Folders for which there is no room come with the number of their files. To find a file by name use glob."""


def list_tool(reach: Reach) -> Tool:
    """The tool, over the files that a call may see."""

    @tool(name="list", description=DESCRIPTION, repeatable=True)
    async def list(
        context: ToolContext,
        path: Annotated[str | None, "The folder; without it the working directory"] = None,
    ) -> ToolOutput:
        filesystem, target = await reach(context, path or ".")
        await access.ask(context, filesystem, target, "list")
        access.require(target)
        if target.kind == "file":
            raise ToolFailure(f"{target.asked} is a file. Read it, or list the folder that holds it.")
        return await _listed(context, filesystem, target)

    return list


async def _listed(context: ToolContext, filesystem: Filesystem, target: Resolved) -> ToolOutput:
    names: list[str] = []
    outside = Outside(context, filesystem, target)

    async def take(records: list[bytes]) -> bool:
        found = (record.decode("utf-8", "replace").removeprefix("./") for record in records)
        # One with a line end could pass for two.
        names.extend([name for name in found if name.isprintable() and await outside.shows(name)])
        return len(names) >= FILES_MAX or outside.enough

    ran = await search.run(
        context, filesystem, target, ["--files", "--null", *search.HIDDEN], take, separator=b"\0"
    )
    tree = Tree(names[:FILES_MAX])
    lines = [f"{target.asked}/", *tree.lines()]
    if not names:
        lines.append("(There are no files, or git ignores them all. Read the folder to see every name.)")
    if outside.unshown:
        lines.append(UNSHOWN)
    if not ran.whole:
        lines.append(f"(Only {len(names[:FILES_MAX])} files were looked at. List a folder in it.)")
    elif tree.is_cut:
        lines.append("(Not every entry is shown. List a folder in it, or use glob.)")
    return ToolOutput(
        text="\n".join(lines),
        title=filesystem.relative(target.asked),
        metadata={"count": tree.count, "truncated": tree.is_cut or not ran.whole},
    )


class Tree:
    """The entries of a tree that are shown: whole folders, level by level, as long as there is room."""

    def __init__(self, names: list[str]) -> None:
        self._below: dict[str, dict[str, bool]] = {"": {}}
        self._files: dict[str, int] = {}
        for name in names:
            self._add(name)
        self._shown: dict[str, list[str]] = {}
        self.count = 0
        self.is_cut = False
        self._choose()

    def _add(self, name: str) -> None:
        folder, parts = "", name.split("/")
        for part in parts[:-1]:
            self._below[folder][part] = True
            folder = f"{folder}{part}/"
            self._below.setdefault(folder, {})
            self._files[folder] = self._files.get(folder, 0) + 1
        self._below[folder][parts[-1]] = False

    def _choose(self) -> None:
        level = [""]
        while level:
            deeper: list[str] = []
            for folder in level:
                entries = sorted(self._below[folder])
                # A folder is shown whole or not at all; only the first one may be too large.
                if self.count + len(entries) > ENTRIES_MAX and folder:
                    self.is_cut = True
                    continue
                self.is_cut = self.is_cut or len(entries) > ENTRIES_MAX
                self._shown[folder] = entries[:ENTRIES_MAX]
                self.count += len(self._shown[folder])
                deeper += [f"{folder}{each}/" for each in self._shown[folder] if self._below[folder][each]]
            level = deeper

    def lines(self, folder: str = "", depth: int = 1) -> list[str]:
        """The tree, each level indented by two spaces."""
        lines: list[str] = []
        for name in self._shown[folder]:
            if not self._below[folder][name]:
                lines.append(f"{'  ' * depth}{name}")
                continue
            inner = f"{folder}{name}/"
            if inner in self._shown:
                lines += [f"{'  ' * depth}{name}/", *self.lines(inner, depth + 1)]
            else:
                lines.append(f"{'  ' * depth}{name}/ ({self._files[inner]} files)")
        return lines
