"""What the box of a command stopped and what the command changed, in words for the model."""

from collections.abc import Sequence

import msgspec

from holdfast.schema.wire import JsonMap
from holdfast.toolkit.box import Box
from holdfast.toolkit.output import ToolFailure
from holdfast.tools.shell.output import Output


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """After a command: a note for the model, empty where there is nothing to say, and the call's facts."""

    note: str
    facts: JsonMap


async def found(box: Box, output: Output) -> Found:
    """Look at what an ended command left. `ToolFailure` where it never ran: the box could not be built."""
    printed = output.shown()
    if box.failure is not None:
        raise ToolFailure(f"{box.failure} {printed.strip()}".strip(), metadata={"sandbox": box.facts})
    stopped, changed = await box.stopped(printed), await box.changed()
    notes = [stopped_note(stopped, may_leave=box.may_leave)] if stopped else []
    if changed:
        notes.append(f"(Changed, and read by later runs: {', '.join(changed)}.)")
    return Found(note="\n".join(notes), facts=box.facts)


def stopped_note(stopped: Sequence[str], *, may_leave: bool = True) -> str:
    """What the box stopped, and the way out where there is one."""
    way = (
        "If it is needed, call `bash` again with `unconfined` and a `reason`; the user is asked."
        if may_leave
        else "This agent only reads; say what is missing."
    )
    return f"(The box stopped {', '.join(stopped)}. Nothing was run again. {way})"
