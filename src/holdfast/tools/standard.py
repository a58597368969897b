"""The tools that every session has, and where their output is kept."""

from collections.abc import Callable

from holdfast.clock import Clock
from holdfast.location.filesystem import Filesystem
from holdfast.person import directories
from holdfast.store.base import Store
from holdfast.toolkit.context import ToolContext
from holdfast.tools.builtin import access
from holdfast.tools.builtin.apply_patch import apply_patch_tool
from holdfast.tools.builtin.bash import bash_tool
from holdfast.tools.builtin.change import Locks
from holdfast.tools.builtin.edit import edit_tool
from holdfast.tools.builtin.glob import glob_tool
from holdfast.tools.builtin.grep import grep_tool
from holdfast.tools.builtin.list import list_tool
from holdfast.tools.builtin.question import question_tool
from holdfast.tools.builtin.read import read_tool
from holdfast.tools.builtin.recall import recall_tool
from holdfast.tools.builtin.skill import SkillsOf, opened_skills, skill_tool
from holdfast.tools.builtin.todo import todoread_tool, todowrite_tool
from holdfast.tools.builtin.write import write_tool
from holdfast.tools.managed_output import ManagedOutput
from holdfast.tools.registry import Registry


def managed_output(clock: Clock, *, trouble: Callable[[str], None] = lambda _: None) -> ManagedOutput:
    """Keeps output that is too long for the record."""
    return ManagedOutput(directories.data() / "tool-output", clock, trouble=trouble)


def standard_tools(store: Store, clock: Clock, skills_of: SkillsOf) -> Registry:
    """A registry with the built-in tools. `skills_of` finds the skills of a session."""
    # The user's store, credentials and settings are not the model's to read.
    closed = [
        directories.data(),
        directories.config(),
        directories.opencode_data(),
        directories.opencode_config(),
    ]
    kept = directories.data() / "tool-output"

    def filesystem(call: ToolContext) -> Filesystem:
        return Filesystem(call.directory, call.worktree, readable=[kept], closed=closed)

    registry, locks = Registry(), Locks()
    output = managed_output(clock)
    registry.register(recall_tool(store, output.open))
    registry.register(bash_tool(filesystem, output))
    reach = access.reaching(filesystem, opened_skills(store, skills_of))
    looking = (read_tool, glob_tool, grep_tool, list_tool)
    others = (todowrite_tool(), todoread_tool(store), skill_tool(skills_of), question_tool())
    for each in (*(made(reach) for made in looking), *others):
        registry.register(each)
    for make in (write_tool, edit_tool, apply_patch_tool):
        registry.register(make(filesystem, locks))
    return registry
