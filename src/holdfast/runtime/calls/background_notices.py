"""Tells the model, before a turn, which processes of its session have ended or are gone.

One system message says it, and the same commit notes it in the records of the calls that started them: none
is told twice, and none goes without a word. A process that another process of ours had started is ended here,
where that is possible, when the session is taken over.
"""

import anyio
import msgspec
from msgspec.structs import replace

from holdfast.runtime.engine import process_group
from holdfast.runtime.engine.background_processes import Recorded
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.runtime.engine.run import Run
from holdfast.schema import typed
from holdfast.schema.ids import MessageID
from holdfast.schema.message import MessageWithParts, SystemMessage
from holdfast.schema.part import ToolPart
from holdfast.schema.stored import BACKGROUND, Mark
from holdfast.schema.times import Created
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.store.put import put
from holdfast.toolkit.processes import ProcessInfo

_COMMAND_CHARS = 200


async def announce(run: Run, ready: PreparedTurn) -> PreparedTurn:
    """Add what happened to processes since the last turn."""
    session = ready.session.id
    known = {each.part.id: each for each in run.engine.background.of(session)}
    ended = any(each.end_ms is not None and not each.told for each in known.values())
    if run.processes_seen and not ended:
        return ready
    run.processes_seen = True
    changed: list[ToolPart] = []
    lines: list[str] = []
    for record in await run.engine.store.select("part", session=session, mark=Mark.OPEN):
        part = record.value()
        found = _recorded(part)
        if found is None:
            continue
        made = known.get(part.id)
        if made is not None and made.end_ms is None:
            continue
        info = found.info if made is None else made.info
        if made is None and found.session == session and found.group.is_here(run.engine.host):
            with anyio.CancelScope(shield=True):
                await process_group.end(found.group)
        end = info.end or run.engine.clock.now_ms()
        changed.append(_marked(part, replace(found, info=replace(info, end=end))))
        lines.append(_ended(info) if made is not None else _gone(info))
    for each in known.values():
        each.told = each.told or each.end_ms is not None
    if not changed:
        return ready

    def make(id: MessageID) -> SystemMessage:
        now = Created(created=run.engine.clock.now_ms())
        return SystemMessage(id=id, session_id=ready.session.id, time=now, text="\n".join(lines))

    message = await run.recorder.add_message(make, *map(put, changed))
    notice = MessageWithParts(message, ())
    return replace(ready, history=[*ready.history, notice], shown=[*ready.shown, notice])


def _recorded(part: object) -> Recorded | None:
    if not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted | ToolError):
        return None
    try:
        return typed.convert((part.state.metadata or {}).get(BACKGROUND), Recorded)
    except msgspec.ValidationError:
        return None  # An imported part may hold anything under this name.


def _marked(part: ToolPart, found: Recorded) -> ToolPart:
    assert isinstance(part.state, ToolCompleted | ToolError)
    metadata = {**(part.state.metadata or {}), BACKGROUND: msgspec.to_builtins(found)}
    return replace(part, state=replace(part.state, metadata=metadata))


def _ended(info: ProcessInfo) -> str:
    how = "was ended" if info.exit is None else f"has ended with exit code {info.exit}"
    return f"The background process {_named(info)} {how}.{_where(info)}"


def _gone(info: ProcessInfo) -> str:
    return (
        f"The background process {_named(info)} is gone: it ended with the program that ran this session. "
        f"Start it again if it is needed.{_where(info)}"
    )


def _named(info: ProcessInfo) -> str:
    command = " ".join(info.command.split())
    shown = command if len(command) <= _COMMAND_CHARS else f"{command[:_COMMAND_CHARS]}…"
    return f"{info.id} (`{shown}`)"


def _where(info: ProcessInfo) -> str:
    return "" if info.path is None else f" What it printed is in {info.path}."
