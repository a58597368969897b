"""How an answer that is open when its session is forked ends in the fork: one row, one way."""

from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.runtime.history import work
from holdfast.schema import stored
from holdfast.schema.fault import AbortedFault, Fault, MessageData
from holdfast.schema.ids import Mint, SessionID
from holdfast.schema.message import MessageWithParts
from holdfast.schema.stored import Mark
from holdfast.sessions import open_answer
from holdfast.store.put import put
from holdfast.store.record import StoredMessage, StoredRecord
from holdfast.testing.clock import FakeClock
from tests.provider.history import done, running, user
from tests.runtime.sample_history import OPEN, answer, note

FORK = SessionID("ses_000000000002AAAAAAAAAAAAAA")
ERROR = AbortedFault(data=MessageData(message="stopped"))
CALL = running("c")
OPEN_WITH_ERROR = answer(CALL, finish=None, time=OPEN, error=ERROR)


def kept(message: MessageWithParts) -> StoredMessage:
    """A message as a store has it."""
    records = []
    for value in (message.info, *message.parts):
        made = put(value)
        assert made.data is not None
        records.append(
            StoredRecord(
                made.session, made.kind, made.id, made.parent, 1, 1, 1, made.mark or Mark.NONE, made.data
            )
        )
    return StoredMessage(records[0], tuple(records[1:]))


@pytest.mark.parametrize(
    ("prompt", "opened", "finish", "error"),
    [
        (user("go"), answer(CALL, finish=None, time=OPEN), "tool-calls", None),
        (user("go"), answer(CALL, done("d", "x"), finish="length", time=OPEN), "length", None),
        (user("go"), OPEN_WITH_ERROR, "tool-calls", ERROR),
        (note("ls"), answer(CALL, finish=None, time=OPEN), work.COMMAND, None),
        (note("ls"), answer(CALL, finish="length", time=OPEN), "length", None),
        (note("ls"), OPEN_WITH_ERROR, work.COMMAND, ERROR),
    ],
    ids=[
        "an answer to a prompt",
        "one whose reason was told",
        "one with an error",
        "a command of the user's own",
        "one of which the reason was told",
        "one that failed",
    ],
)
def test_it_ends_as_far_as_it_had_come(
    prompt: MessageWithParts, opened: MessageWithParts, finish: str, error: Fault | None
) -> None:
    """A reason and an error that the source had stored stay; a command of the user's own owes nothing."""
    names: dict[str, str] = {
        each.id: f"{each.id[:4]}{n:012x}{'B' * 14}" for n, each in enumerate((opened.info, *opened.parts))
    }
    opened = MessageWithParts(replace(opened.info, parent_id=prompt.info.id), opened.parts)
    puts = open_answer.settled(
        kept(opened), [kept(prompt)], FORK, names, [], now_ms=9, mint=Mint(FakeClock())
    )

    assert [names[opened.info.id], *(names[part.id] for part in opened.parts)] == [each.id for each in puts]
    made: Any = stored.load("message", puts[0].data or b"", id=puts[0].id, session=FORK, parent=None)
    assert (finish, error, 9) == (made.finish, made.error, made.time.completed)
    parts: Any = [
        stored.load("part", each.data or b"", id=each.id, session=FORK, parent=each.parent)
        for each in puts[1:]
    ]
    assert parts[0].state.metadata["outcome"] == "unknown"
