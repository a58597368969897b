"""The tool `grep`: finds lines by a regular expression.

What must stay true: a line is shown only where `read` would show it without asking; what is left out for that
is counted.
"""

from collections.abc import Callable
from typing import Annotated, Final

from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools import glob_pattern
from holdfast.tools.builtin import access, search
from holdfast.tools.builtin.access import Reach
from holdfast.tools.builtin.outside import Outside
from holdfast.tools.glob_pattern import BadGlob

LINE_CHARS_MAX: Final = 2_000
UNSHOWN_MAX: Final = 500
"""After so many files that may not be shown, the search ends."""

DESCRIPTION: Final = f"""Search file contents by a regular expression (ripgrep's syntax), line by line. \
Answers at most {search.LIMIT} lines with their numbers, by file. Hidden files are searched; what git \
ignores, binary files, and files that you may not read without asking are not. Give a file as `path` to \
search just it."""


def grep_tool(reach: Reach) -> Tool:
    """The tool, over the files that a call may see."""

    @tool(name="grep", description=DESCRIPTION, repeatable=True)
    async def grep(
        context: ToolContext,
        pattern: Annotated[str, "The regular expression"],
        path: Annotated[str | None, "The folder or file to search; without it the working directory"] = None,
        include: Annotated[str | None, "Only files that match this glob: `*.py`, `src/**/*.{ts,tsx}`"] = None,
    ) -> ToolOutput:
        search.check_pattern(pattern, "pattern")
        filesystem, target = await reach(context, path or ".")
        options, is_meant = _included(include)
        if not target.readable:
            await access.ask_outside(context, filesystem, target)
        await context.ask(
            "grep",
            [pattern],
            always=["*"],
            metadata={"pattern": pattern, "path": path, "include": include},
        )
        if target.kind == "file":
            await access.ask_file(context, filesystem, target, "read")
        access.require(target)
        matches = _Matches(context, filesystem, target, is_meant)
        command = [*_OPTIONS, *options, f"--regexp={pattern}"]
        ran = await search.run(context, filesystem, target, command, matches.take, separator=b"\n")
        if ran.late and not matches.count:
            raise ToolFailure(search.LATE)
        return ToolOutput(
            text=matches.text(ran),
            title=pattern,
            metadata={"matches": matches.count, "truncated": not ran.whole, "unshown": len(matches.unshown)},
        )

    return grep


_OPTIONS: Final = (
    "--null",
    "--line-number",
    "--with-filename",
    "--no-heading",
    "--color=never",
    *search.HIDDEN,
    "--glob=!*\n*",  # A name with a line end in it could pass for another file's.
    f"--max-columns={4 * LINE_CHARS_MAX}",
    "--max-columns-preview",
)


def _included(include: str | None) -> tuple[list[str], Callable[[str], bool]]:
    """Options for ripgrep that leave out most of what is not meant, and what decides about the rest."""
    if not include:
        return [], lambda _: True
    search.check_pattern(include, "glob of `include`")
    try:
        is_meant = glob_pattern.matcher(include)
    except BadGlob as error:
        raise ToolFailure(f"The glob of `include` cannot be used: {error}. Write it again.") from error
    last = glob_pattern.last_name(include)
    # Not as `--glob`, which would bring back what git ignores.
    return ([] if last is None else [f"--type-add=holdfast:{last}", "--type=holdfast"]), is_meant


class _Matches:
    """The lines found so far, by file."""

    def __init__(
        self, context: ToolContext, filesystem: Filesystem, target: Resolved, is_meant: Callable[[str], bool]
    ) -> None:
        self._context = context
        self._filesystem = filesystem
        self._target = target
        self._is_meant = is_meant
        self._outside = Outside(context, filesystem, target)
        self._lines: dict[str, list[tuple[int, str]]] = {}
        self.unshown: set[str] = set()
        self.count = 0

    async def take(self, records: list[bytes]) -> bool:
        """Take what ripgrep printed; True when it is enough."""
        for record in records:
            name, _, match = record.partition(b"\0")
            number, _, line = match.partition(b":")
            if not number.isdigit():
                continue  # A note about a binary file.
            path = "" if self._target.kind == "file" else name.decode("utf-8", "replace").removeprefix("./")
            if await self._is_shown(path):
                self._lines[path].append((int(number), _cut(line.decode("utf-8", "replace"))))
                self.count += 1
            if self.count == search.LIMIT or len(self.unshown) == UNSHOWN_MAX:
                return True
        return False

    async def _is_shown(self, path: str) -> bool:
        if path in self._lines:
            return True
        if path in self.unshown or (path and not self._is_meant(path)):
            return False
        if path:
            file = self._filesystem.below(self._target, path)
            is_readable = await self._context.verdict("read", self._filesystem.patterns(file)) == "allow"
            if not is_readable or not await self._outside.shows(path):
                self.unshown.add(path)
                return False
        self._lines[path] = []
        return True

    def text(self, ran: search.Ran) -> str:
        """What the model is shown."""
        matches = "1 match" if self.count == 1 else f"{self.count} matches"
        blocks = [f"Found {matches}" if self.count else "No matches found"]
        for path, lines in sorted(self._lines.items()):
            shown = [f"  Line {number}: {line}" for number, line in lines]
            blocks.append("\n".join([f"{self._target.asked / path}:", *shown]))
        if self.unshown:
            files = "1 file has" if len(self.unshown) == 1 else f"{len(self.unshown)} files have"
            blocks.append(
                f"({files} matches that are not shown, since reading needs the user's consent. Read a file "
                "by its path to ask for it.)"
            )
        if ran.late:
            blocks.append(search.LATE)
        elif self.count == search.LIMIT:
            blocks.append(f"(Only the first {search.LIMIT}. Use a narrower pattern, `path` or `include`.)")
        return "\n\n".join(blocks)


def _cut(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}..."
