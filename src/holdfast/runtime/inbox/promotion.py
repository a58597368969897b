"""Promotion: the prompts that wait in the inbox, and which of them join the model's history at a boundary."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from holdfast.errors import RecordCorrupt
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.recorder import Recorder
from holdfast.schema.message import Message
from holdfast.schema.prompt import AdmittedPrompt, CompactionPartInput
from holdfast.schema.stored import Mark
from holdfast.store.base import Store
from holdfast.store.batch import Unchanged
from holdfast.store.put import put


class Waiting(msgspec.Struct, frozen=True):
    """A prompt that waits for its promotion, with the numbers of its record."""

    prompt: AdmittedPrompt
    position: int
    """When it was admitted."""
    seq: int


async def pending(engine: Engine, session: str) -> list[Waiting]:
    """Prompts that wait for their promotion, in the order of their admission."""
    records = await engine.store.select("prompt", session=session, mark=Mark.OPEN)
    found = []
    for record in records:
        value = record.value()
        assert isinstance(value, AdmittedPrompt)
        found.append(Waiting(value, record.position, record.seq))
    return found


async def admitted_for(store: Store, place: str) -> dict[str, int]:
    """Sessions with prompts that wait for an owner of this placement, each with the number of the newest."""
    found: dict[str, int] = {}
    for record in await store.select("prompt", mark=Mark.OPEN):
        try:
            value = record.value()
        except RecordCorrupt:
            continue
        if isinstance(value, AdmittedPrompt) and value.placement == place:
            found[record.session] = max(record.seq, found.get(record.session, 0))
    return found


def next_to_promote(waiting: Sequence[Waiting], *, idle: bool) -> list[Waiting]:
    """Which prompts join at this boundary: all that steer; if there are none and the session would go idle,
    the first queued one. Pure.
    """
    steering = [each for each in waiting if each.prompt.delivery == "steer"]
    if not idle or steering:
        return steering
    return [each for each in waiting if each.prompt.delivery == "queue"][:1]


def asks(waiting: Waiting) -> bool:
    """Whether the model has to answer a prompt: not one without reply, nor a compaction."""
    return not waiting.prompt.no_reply and not compacts(waiting)


def compacts(waiting: Waiting) -> bool:
    """Whether a prompt asks for a compaction."""
    return any(isinstance(part, CompactionPartInput) for part in waiting.prompt.parts)


def promote(
    engine: Engine, recorder: Recorder, chosen: Sequence[Waiting], messages: Sequence[Message]
) -> None:
    """Give prompts and their messages a place in the model's history, with the next write."""
    now_ms = engine.clock.now_ms()
    recorder.hold(
        *(put(replace(each.prompt, promoted=now_ms)) for each in chosen),
        *(put(message, placed=True) for message in messages),
        expect=[Unchanged(recorder.session, "prompt", each.prompt.id, each.seq) for each in chosen],
    )


def withdraw(recorder: Recorder, waiting: Sequence[Waiting]) -> None:
    """Let no owner take these prompts up by itself any more, with the next write: they wait for a user."""
    asked = [each for each in waiting if each.prompt.placement is not None]
    recorder.hold(
        *(put(replace(each.prompt, placement=None)) for each in asked),
        expect=[Unchanged(recorder.session, "prompt", each.prompt.id, each.seq) for each in asked],
    )
