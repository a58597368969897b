"""The tool `skill`: gives the model the text of a skill; from then on the session may read its folder.

What must stay true: which folders are open is derived from the session's records, so that it survives a
restart, and holds only for what is a skill of the same name at the same place now; a record that was made
elsewhere opens nothing else.
"""

import difflib
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import anyio.to_thread

from holdfast.config.documents import markdown
from holdfast.errors import HoldfastError
from holdfast.location import instruction_files
from holdfast.location.skills import Skill
from holdfast.schema.tool_state import ToolCompleted
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.builtin.access import Opened

NAME: Final = "skill"
TEXT_BYTES_MAX: Final = 256 * 1024
FILES_MAX: Final = 10
FOLDERS_MAX: Final = 100
SHOWN_MAX: Final = 50
PAGE: Final = 100
SCANNED_MAX: Final = 5_000
"""Messages that are looked through for skills that were loaded, the latest first."""

DESCRIPTION: Final = """Load a skill: instructions for a particular kind of work, by a name from the list of \
available skills. Follow them; files beside the skill may be read by the paths in the answer."""

SkillsOf = Callable[[str], Awaitable[Sequence[Skill]]]
"""The skills that there are for a session."""


def skill_tool(skills_of: SkillsOf) -> Tool:
    """The tool, over the skills of a session."""

    @tool(name=NAME, description=DESCRIPTION, repeatable=True)
    async def skill(context: ToolContext, name: Annotated[str, "The name of the skill"]) -> ToolOutput:
        found = {each.name: each for each in await skills_of(context.session_id)}
        chosen = found.get(name)
        if chosen is None:
            raise ToolFailure(await _unknown(context, name, sorted(found)))
        await context.ask(NAME, [name], always=[name], metadata={"name": name})
        try:
            return await anyio.to_thread.run_sync(_loaded, chosen, abandon_on_cancel=True)
        except (HoldfastError, ValueError, OSError) as error:
            raise ToolFailure(f"The skill {name} cannot be read: {error}.") from error

    return skill


def opened_skills(store: Store, skills_of: SkillsOf) -> Opened:
    """The folders of the skills that the session has loaded, and that its agent may still load."""

    async def opened(context: ToolContext) -> Sequence[Path]:
        loaded = await _loads(store, context.session_id)
        if not loaded:
            return ()
        return [
            each.location.parent
            for each in await skills_of(context.session_id)
            if (each.name, str(each.location.parent)) in loaded
            and await context.verdict(NAME, [each.name]) != "deny"
        ]

    return opened


async def _loads(store: Store, session: str) -> set[tuple[str, str]]:
    """Name and folder of each skill that a call in the session loaded."""
    found: set[tuple[str, str]] = set()
    before: str | None = None
    for _ in range(SCANNED_MAX // PAGE):
        page = await store.messages(MessageQuery(session, limit=PAGE, before=before, system=False))
        for message in page.messages:
            for record in message.parts:
                part = record.value()
                state = getattr(part, "state", None)
                if getattr(part, "tool", None) == NAME and isinstance(state, ToolCompleted):
                    found.add((str(state.metadata.get("name")), str(state.metadata.get("dir"))))
        before = page.older
        if before is None:
            break
    return found


def _loaded(skill: Skill) -> ToolOutput:
    folder = skill.location.parent
    whole = skill.text
    if whole is None:
        whole = instruction_files.read(
            skill.location, worktree=folder, contained=False, bytes_max=TEXT_BYTES_MAX
        ).text
    _, text = markdown.split(whole[:TEXT_BYTES_MAX].strip())
    files = [str(each) for each in _beside(skill.location)]
    lines = [f'<skill_content name="{skill.name}">', text, "", f"The folder of this skill: {folder}"]
    if files:
        lines += ["Relative paths in it start there. Some of its files:", *files]
    return ToolOutput(
        text="\n".join([*lines, "</skill_content>"]),
        title=f"Loaded the skill {skill.name}",
        metadata={"name": skill.name, "dir": str(folder)},
    )


def _beside(path: Path) -> list[Path]:
    """Some of the files of a skill, the least deep first. Links are not followed."""
    found: list[Path] = []
    folders = deque([path.parent])
    for _ in range(FOLDERS_MAX):
        if not folders:
            break
        with os.scandir(folders.popleft()) as entries:
            for each in sorted(entries, key=lambda entry: entry.name):
                if each.is_dir(follow_symlinks=False):
                    folders.append(Path(each.path))
                elif (
                    each.is_file(follow_symlinks=False)
                    and Path(each.path) != path
                    and each.name.isprintable()
                ):
                    found.append(Path(each.path))
                if len(found) == FILES_MAX:
                    return found
    return found


async def _unknown(context: ToolContext, name: str, names: list[str]) -> str:
    """Which skills there are that the agent may load, the nearest first."""
    known = [each for each in names if await context.verdict(NAME, [each]) != "deny"]
    if not known:
        return "There are no skills here. Go on without one."
    near = difflib.get_close_matches(name[:64], known, n=3)
    shown = list(dict.fromkeys([*near, *known]))[:SHOWN_MAX]
    return f"There is no skill of that name. There are: {', '.join(shown)}."
