"""The answer that is being written while its session is forked, as the fork has it.

It comes along once a call of it has begun: the fork's model must not be asked to go on without knowing what
it did. In the fork it is over, and each open call says what is known of it there; the source goes on.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.runtime.answer import ending
from holdfast.runtime.answer.ending import Ending
from holdfast.runtime.engine.recorder import Ids
from holdfast.schema.ids import MessageID, Mint, PartID, Prefix, SessionID
from holdfast.schema.message import AssistantMessage, MessageWithParts
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolPending
from holdfast.store.batch import Put
from holdfast.store.put import put
from holdfast.store.record import StoredMessage
from holdfast.tools import execute
from holdfast.tools.execute import Settlement

AT_WORK: Final = (
    "This call was at work when the conversation was copied, so its result is not here. Whether it took "
    "effect is unknown: look at the actual state before you do it again."
)
WAITED: Final = (
    "This call waited for the user's consent when the conversation was copied. Here it did not run."
)


def begun(messages: Sequence[StoredMessage]) -> MessageWithParts | None:
    """The answer among messages that are being written, if a call of it has begun."""
    for message in messages:
        parts = tuple(part.value() for part in message.parts)
        if any(isinstance(part, ToolPart) and not isinstance(part.state, ToolPending) for part in parts):
            return MessageWithParts(message.info.value(), parts)
    return None


def taken(
    answer: MessageWithParts,
    session: SessionID,
    *,
    names: Mapping[str, str],
    waiting: Collection[str],
    now_ms: int,
    mint: Mint,
) -> list[Put]:
    """The records of the answer in the fork. `names`: the new ids of messages; `waiting`: the calls that wait
    for the user's consent, and so have done nothing yet.
    """

    def settles(call: ToolPart) -> Settlement:
        if call.call_id in waiting or isinstance(call.state, ToolPending):
            return execute.failed(WAITED, outcome="interrupted")
        return execute.failed(AT_WORK, outcome="unknown")

    info = answer.info
    assert isinstance(info, AssistantMessage)
    kinds: list[Prefix] = ["msg" if value is info else "prt" for value in (info, *answer.parts)]
    id, *others = mint.rising(kinds)
    parent = MessageID(names.get(info.parent_id, info.parent_id))
    info = replace(info, id=MessageID(id), session_id=session, parent_id=parent)
    parts = tuple(
        replace(part, id=PartID(other), session_id=session, message_id=info.id)
        for part, other in zip(answer.parts, others, strict=True)
    )
    answer = MessageWithParts(info, parts)
    how = Ending(finish=info.finish or "tool-calls", settles=settles)
    closed = {each.id: each for each in ending.closed(answer, how, Ids(mint.ascending), now_ms, mint)}
    return [closed.get(value.id) or put(value) for value in (info, *parts)]
