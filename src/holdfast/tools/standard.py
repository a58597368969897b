"""The tools that every session has, and where their output is kept."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from holdfast.clock import Clock
from holdfast.errors import ContextError
from holdfast.location.filesystem import Filesystem
from holdfast.net.stream import Http
from holdfast.person import directories, temporary
from holdfast.store.base import Store
from holdfast.toolkit.context import ToolContext
from holdfast.tools.builtin import access
from holdfast.tools.builtin.apply_patch import apply_patch_tool
from holdfast.tools.builtin.bash import bash_tool
from holdfast.tools.builtin.change import Locks
from holdfast.tools.builtin.checked import ChecksOf, checking
from holdfast.tools.builtin.edit import edit_tool
from holdfast.tools.builtin.glob import glob_tool
from holdfast.tools.builtin.grep import grep_tool
from holdfast.tools.builtin.list import list_tool
from holdfast.tools.builtin.process import process_tool
from holdfast.tools.builtin.question import question_tool
from holdfast.tools.builtin.read import read_tool
from holdfast.tools.builtin.recall import recall_tool
from holdfast.tools.builtin.skill import SkillsOf, opened_skills, skill_tool
from holdfast.tools.builtin.todo import todoread_tool, todowrite_tool
from holdfast.tools.builtin.webfetch import webfetch_tool
from holdfast.tools.builtin.write import write_tool
from holdfast.tools.closed_places import closed_places
from holdfast.tools.managed_output import ManagedOutput
from holdfast.tools.registry import Registry


def managed_output(clock: Clock, *, trouble: Callable[[str], None] = lambda _: None) -> ManagedOutput:
    """Keeps output that is too long for the record."""
    return ManagedOutput(directories.data() / "tool-output", clock, trouble=trouble)


def standard_tools(
    store: Store,
    clock: Clock,
    skills_of: SkillsOf,
    http: Callable[[], Http],
    checks_of: ChecksOf,
    *,
    stored_at: Path | None = None,
) -> Registry:
    """A registry with the built-in tools. `skills_of` and `checks_of` find those of a session; `stored_at` is
    where the store lies on this machine, if it does.
    """
    kept, plans = directories.data() / "tool-output", directories.data() / "plans"

    def reading(call: ToolContext) -> Filesystem:
        readable = [kept, plans]
        with contextlib.suppress(ContextError):  # It is a link, or another user's: outside like any other.
            readable.append(temporary.folder())
        closed = closed_places(stored_at, call.directory, call.worktree)
        return Filesystem(call.directory, call.worktree, readable=readable, closed=closed)

    def writing(call: ToolContext) -> Filesystem:
        # Plans are asked for like all that is outside, but they are not closed.
        closed = closed_places(stored_at, call.directory, call.worktree)
        return Filesystem(call.directory, call.worktree, readable=[plans], closed=closed)

    registry, locks = Registry(), Locks()
    output = managed_output(clock)
    registry.register(recall_tool(store, output.open))
    registry.register(bash_tool(reading, output))
    registry.register(process_tool())
    reach = access.reaching(reading, opened_skills(store, skills_of))
    looking = (read_tool, glob_tool, grep_tool, list_tool)
    others = (
        todowrite_tool(),
        todoread_tool(store),
        skill_tool(skills_of),
        question_tool(),
        webfetch_tool(http),
    )
    for each in (*(made(reach) for made in looking), *others):
        registry.register(each)
    look = checking(checks_of)
    for make in (write_tool, edit_tool, apply_patch_tool):
        registry.register(make(writing, locks, look))
    return registry
