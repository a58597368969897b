"""Questions to the user reach followers of the feed, and so do their answers."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.feed.tail import BEGINNING
from holdfast.schema import stored
from holdfast.schema.ids import MessageID, SessionID
from holdfast.schema.request import (
    InterruptRequest,
    PermissionAnswer,
    PermissionRequest,
    Question,
    QuestionAnswer,
    QuestionRequest,
    Request,
    RequestTime,
    ToolRef,
)
from holdfast.store.batch import Batch, Put
from holdfast.testing.store_contract.build import S1, session
from tests.feed.listening import Listener, opened

S = SessionID(S1)
NOW = RequestTime(created=1)
THEN = RequestTime(created=1, answered=2)
MAY = PermissionRequest(
    id="per_1",
    session_id=S,
    permission="bash",
    patterns=["ls"],
    metadata={"command": "ls"},
    always=["ls *"],
    tool=ToolRef(message_id=MessageID("msg_1"), call_id="c"),
    time=NOW,
)
WHICH = QuestionRequest(
    id="que_1", session_id=S, questions=[Question(question="Which?", header="W", options=[])], time=NOW
)
ASKED = {
    "id": "per_1",
    "sessionID": S,
    "permission": "bash",
    "patterns": ["ls"],
    "metadata": {"command": "ls"},
    "always": ["ls *"],
    "tool": {"messageID": "msg_1", "callID": "c"},
}
QUESTIONS = [{"question": "Which?", "header": "W", "options": []}]
OF_MAY, OF_WHICH = {"sessionID": S, "requestID": "per_1"}, {"sessionID": S, "requestID": "que_1"}


def put(request: Request) -> Put:
    """The change that writes a request."""
    return Put(S, "request", request.id, stored.strip("request", request), mark=stored.mark(request))


@pytest.mark.parametrize(
    ("request_", "answer", "events"),
    [
        (
            MAY,
            PermissionAnswer(reply="always"),
            [("permission.asked", ASKED), ("permission.replied", {**OF_MAY, "reply": "always"})],
        ),
        (
            MAY,
            None,
            [("permission.asked", ASKED), ("permission.replied", {**OF_MAY, "reply": "reject"})],
        ),
        (
            WHICH,
            QuestionAnswer(answers=[["this"]]),
            [
                ("question.asked", {"id": "que_1", "sessionID": S, "questions": QUESTIONS}),
                ("question.replied", {**OF_WHICH, "answers": [["this"]]}),
            ],
        ),
        (
            WHICH,
            QuestionAnswer(),
            [
                ("question.asked", {"id": "que_1", "sessionID": S, "questions": QUESTIONS}),
                ("question.rejected", OF_WHICH),
            ],
        ),
    ],
    ids=["allowed", "withdrawn", "answered", "dismissed"],
)
async def test_a_request_and_its_answer_are_announced(
    tmp_path: Path, request_: Any, answer: Any, events: list[tuple[str, Any]]
) -> None:
    """As clients know them; whoever joins later gets the latest state alone. An order to stop is not told."""
    stop = InterruptRequest(id="per_0", session_id=S, time=NOW)
    async with opened(tmp_path / "store.db") as (store, feed):
        await store.commit(Batch((session(),)))
        listener = Listener(feed, await store.head())
        await store.commit(Batch((put(stop), put(request_))))
        await listener.until(lambda it: len(it.frames) >= 1)
        await store.commit(Batch((put(replace(request_, time=THEN, answer=answer)),)))
        await listener.until(lambda it: len(it.frames) >= 2)
        late = Listener(feed, BEGINNING)
        await late.until(lambda it: len(it.frames) >= 2)
        assert [(frame.type, frame.value()) for frame in listener.frames] == events
        assert [(frame.type, frame.value()) for frame in late.frames[1:]] == events[1:]
        await listener.close()
        await late.close()
