"""What the tools that change files do afterwards: run the user's checks, take up what a formatter rewrote.

What must stay true: the change has happened, and its result says so, whatever becomes of the checks; the
content that the session is recorded to know is the one on disk, or the one that it wrote.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

import anyio
import anyio.to_thread
import msgspec

from holdfast.config.checks import Check
from holdfast.errors import HoldfastError
from holdfast.location import write_path
from holdfast.location.filesystem import Filesystem
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.file_edit import FileEdit
from holdfast.toolkit.output import ToolFailure
from holdfast.tools.builtin import change as changing
from holdfast.tools.builtin import file_text
from holdfast.tools.builtin.change import Change
from holdfast.tools.checks import finding, run
from holdfast.tools.checks.commands import Changed
from holdfast.tools.checks.finding import Finding

REWRITTEN: Final = "A check has rewritten this; you are shown the result, and need not read it again.\n"

ChecksOf = Callable[[str], Awaitable[Sequence[Check]]]
"""The checks that there are for a session."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """Changes as they stand now, and what is said of them beside."""

    changes: tuple[Change, ...]
    text: str = ""
    metadata: JsonMap = {}


class Look(Protocol):
    """Looks at changes that were just made."""

    async def __call__(
        self, context: ToolContext, filesystem: Filesystem, made: Sequence[Change]
    ) -> Checked: ...


async def unchecked(context: ToolContext, filesystem: Filesystem, made: Sequence[Change]) -> Checked:
    """Leave the changes as they are."""
    del context, filesystem
    return Checked(changes=tuple(made))


def checking(checks_of: ChecksOf) -> Look:
    """Run the checks of the session on what was changed."""

    async def look(context: ToolContext, filesystem: Filesystem, made: Sequence[Change]) -> Checked:
        changed = [
            Changed(str(each.target.real), filesystem.relative(each.target.real))
            for each in made
            if each.after is not None and each.after != each.before
        ]
        # The change is complete: an interrupt waits until that can be recorded.
        with context.effect(*(str(each.target.asked) for each in made)):
            return await checked(context, filesystem, made, changed)

    async def checked(
        context: ToolContext, filesystem: Filesystem, made: Sequence[Change], changed: Sequence[Changed]
    ) -> Checked:
        checks: Sequence[Check] = ()
        try:
            try:
                checks = await checks_of(context.session_id) if changed else ()
            except HoldfastError as error:
                said = f"\n\nNo check was run: which there are could not be read ({error})."
                return Checked(changes=tuple(made), text=said)
            if not checks:
                return Checked(changes=tuple(made))
            findings = await run.run(context, checks, changed)
            now = [await _reread(context, filesystem, each) for each in made]
        except anyio.get_cancelled_exc_class():
            # Nothing may be waited for any more, and nothing has to: the change itself is complete.
            interrupted = [Finding(name=each.name, outcome="interrupted") for each in checks]
            return _checked(made, interrupted)
        rewritten = any(one is not other for one, other in zip(made, now, strict=True))
        return _checked(now, findings, REWRITTEN if rewritten else "")

    return look


def _checked(made: Sequence[Change], findings: Sequence[Finding], said: str = "") -> Checked:
    if not findings:
        return Checked(changes=tuple(made))
    text = f"\n\n{said}{finding.words(findings)}"
    return Checked(changes=tuple(made), text=text, metadata=finding.metadata(findings))


async def _reread(context: ToolContext, filesystem: Filesystem, change: Change) -> Change:
    """The change with what a formatter made of it; as it was where the file cannot be read as text now."""
    if change.after is None or change.after == change.before:
        return change
    try:
        # It only reads, so an interrupt need not wait for a disk that hangs.
        data = await anyio.to_thread.run_sync(
            file_text.load, filesystem, change.target, abandon_on_cancel=True
        )
        if data == change.after:
            return change
        now = await changing.change(filesystem, change.target, change.before, data)
    except (HoldfastError, ToolFailure, OSError):
        return change
    await context.keep(FileEdit(change.target.real, change.before, data))
    context.edited(change.target.real, write_path.digest(data))
    return now
