"""Sessions of OpenCode's second runtime, which has messages of another shape in a table of its own."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.store.base import Store
from holdfast.store.exchange.portable.report import Counts
from holdfast.store.query import MessageQuery
from tests.store.exchange.opencode.world import PARENT, Db, brought, held, msg, tokens

MODEL = {"id": "m", "providerID": "p", "variant": "default"}


class V2(Db):
    """Rows of `session_message` in the order in which they are given."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.session(agent="build", model=MODEL)
        self._seq = 0

    def add(self, type: str, **data: Any) -> None:
        self._seq += 1
        time = {"created": 1000 + self._seq, **data.pop("time", {})}
        # The times run backwards: the order is that of `seq`.
        at = {"time_created": 9999 - self._seq, "time_updated": 1}
        row = {"id": msg(self._seq), "session_id": PARENT, "type": type, "seq": self._seq}
        self.insert("session_message", **row, **at, data={**data, "time": time})


@pytest.fixture
def db(tmp_path: Path) -> V2:
    return V2(tmp_path / "opencode.db")


async def test_types_that_nobody_knows_stay_behind(store: Store, db: V2) -> None:
    """A message, or content in one, of an unknown type is skipped and named; the rest comes."""
    db.add("user", text="hi")
    db.add("telepathy", text="?")
    db.add("assistant", agent="build", model=MODEL, content=[{"type": "image"}], finish="stop")
    db.insert("session_message", id="msg_x", session_id=PARENT, type="user", seq=9,
              time_created=1, time_updated=1, data="{")  # fmt: skip

    report = await brought(store, db.path)

    assert report.counts["message"] == Counts(new=2, skipped=2)
    assert report.counts["part"] == Counts(new=3, skipped=1)
    assert {skip.why for skip in report.skipped} >= {
        "there is no message of the type 'telepathy'",
        "there is no content of the type 'image'",
    }


async def test_a_prompt_that_waits_stays_behind(store: Store, db: V2) -> None:
    """It was never shown to the model; bringing it over would run it."""
    row = {"id": msg(1), "session_id": PARENT, "prompt": {"text": "later"}, "delivery": "queue"}
    db.insert("session_input", **row, admitted_seq=1, time_created=1)

    report = await brought(store, db.path)

    assert report.counts["prompt"] == Counts(skipped=1)
    assert (await held(store))["messages"] == []


async def test_an_exchange_becomes_messages_with_parts(store: Store, db: V2) -> None:
    """Text, files, agents; reasoning, tools in every state, snapshots, cost: each finds its part."""
    source = {"start": 0, "end": 2, "text": "@a"}
    db.add("agent-switched", agent="plan")
    db.add("model-switched", model={"id": "m2", "providerID": "p2", "variant": "high"})
    db.add(
        "user",
        text="hi @a",
        files=[{"uri": "file:///a", "mime": "text/plain", "name": "a", "source": source}],
        agents=[{"name": "general", "source": source}],
    )
    done = {
        "status": "completed",
        "input": {"x": 1},
        "structured": {"y": 2},
        "content": [{"type": "text", "text": "out"}, {"type": "file", "uri": "data:,x", "mime": "a/b"}],
    }
    failed = {"status": "error", "input": {}, "structured": {}, "content": [], "error": {"message": "no"}}
    db.add(
        "assistant",
        agent="plan", model=MODEL, finish="stop", cost=0.5, tokens=tokens(1, 2),
        snapshot={"start": "s1", "end": "s2"},
        time={"completed": 1009},
        content=[
            {"type": "reasoning", "id": "r", "text": "hm", "providerMetadata": {"sig": 1}},
            {"type": "text", "id": "t", "text": "hello"},
            {"type": "tool", "id": "c1", "name": "bash", "state": done, "provider": {"executed": True},
             "time": {"created": 5, "completed": 6, "pruned": 7}},
            {"type": "tool", "id": "c2", "name": "bash", "state": failed, "time": {"created": 5}},
        ],
    )  # fmt: skip

    await brought(store, db.path)

    made = await held(store)
    question, answer = made["messages"]
    text, file, agent = question["parts"]
    assert question["info"]["agent"] == "plan"
    assert question["info"]["model"] == {"providerID": "p2", "modelID": "m2", "variant": "high"}
    assert text["text"] == "hi @a"
    assert (file["url"], file["source"]["text"]) == ("file:///a", {"value": "@a", "start": 0, "end": 2})
    assert (agent["name"], agent["source"]["value"]) == ("general", "@a")
    assert answer["info"]["parentID"] == question["info"]["id"]
    assert (answer["info"]["modelID"], answer["info"]["time"]) == ("m", {"created": 1004, "completed": 1009})
    start, thought, said, ran, broke, end = answer["parts"]
    assert (start["type"], start["snapshot"], end["snapshot"]) == ("step-start", "s1", "s2")
    assert (thought["text"], thought["metadata"]) == ("hm", {"sig": 1})
    assert said["text"] == "hello"
    assert ran["metadata"] == {"providerExecuted": True}
    assert (ran["callID"], ran["state"]["output"], ran["state"]["metadata"]) == ("c1", "out", {"y": 2})
    assert ran["state"]["time"] == {"start": 5, "end": 6, "compacted": 7}
    assert ran["state"]["attachments"][0]["url"] == "data:,x"
    assert (broke["state"]["status"], broke["state"]["error"]) == ("error", "no")
    assert (end["reason"], end["cost"], end["tokens"]) == ("stop", 0.5, tokens(1, 2))
    assert not (await brought(store, db.path)).changed


async def test_other_messages_find_their_form(store: Store, db: V2) -> None:
    """Mid-conversation updates are system messages; host text is synthetic; a shell command is a call."""
    db.add("system", text="It is Monday")
    db.add("synthetic", sessionID=PARENT, text="note")
    db.add("shell", callID="c", command="ls", output="a", time={"completed": 1010})
    db.add("compaction", reason="auto", summary="All so far", recent="The end")
    db.add("assistant", agent="build", model=MODEL, content=[], error={"type": "unknown", "message": "boom"})

    await brought(store, db.path)

    system, note, question, shell, compacted, failed = (await held(store))["messages"]
    assert (system["info"]["role"], system["info"]["text"]) == ("system", "It is Monday")
    shown = await store.messages(MessageQuery(PARENT, limit=5, system=False))
    others = [note, question, shell, compacted, failed]
    assert [each.info.id for each in shown.messages] == [each["info"]["id"] for each in others]
    assert shown.older is None
    assert (note["parts"][0]["text"], note["parts"][0]["synthetic"]) == ("note", True)
    assert shell["info"]["parentID"] == question["info"]["id"]
    assert shell["parts"][0]["state"]["input"] == {"command": "ls"}
    assert shell["parts"][0]["state"]["output"] == "a"
    assert "All so far\n\nThe end" in compacted["parts"][0]["text"]
    assert failed["info"]["error"] == {"name": "UnknownError", "data": {"message": "boom"}}
    assert not (await brought(store, db.path)).changed


async def test_a_session_that_the_first_runtime_knows_is_read_from_there(store: Store, db: V2) -> None:
    """Both tables tell of the same conversation; one of them is enough."""
    db.exchange(20)
    db.add("user", text="the same again")

    await brought(store, db.path)

    assert [each["info"]["id"] for each in (await held(store))["messages"]] == [msg(20), msg(22)]
