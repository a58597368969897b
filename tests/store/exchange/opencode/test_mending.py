"""Records of every age become records of today; what cannot be mended is refused with its reason."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.schema import stored, wire
from holdfast.store.exchange.opencode import mend_message, mend_part, mend_session
from holdfast.store.exchange.opencode.mend_message import Around
from tests.schema.strategies import JSON
from tests.store.exchange.opencode.world import PARENT, assistant, msg, prt, tokens, user

ZERO = tokens(0, 0)


def as_json(value: Any) -> Any:
    return msgspec.json.decode(wire.encode(value))


def message(value: Any) -> tuple[dict[str, Any], list[str]]:
    around = Around(PARENT, "/work", asked=msg(9), model={"providerID": "p", "modelID": "after"})
    made, dropped = mend_message.message(value, id=msg(1), created=7, around=around)
    return as_json(made), dropped


def part(**value: Any) -> tuple[dict[str, Any], list[str]]:
    made, dropped = mend_part.part(value, id=prt(2), session=PARENT, message=msg(1), created=7)
    return as_json(made), dropped


@pytest.mark.parametrize(
    "value", [None, [], "x", {}, {"role": "tool"}, {"role": 7}, {"role": "system"}, {"role": ["user"]}]
)
def test_what_is_no_message_is_refused(value: Any) -> None:
    """There is nothing to mend in it."""
    with pytest.raises(InvalidInput):
        message(value)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"type": "future"},
        {"type": ["text"]},
        {"type": "text"},
        {"type": "text", "text": 7},
        {"type": "file"},
        {"type": "tool", "tool": "bash"},
        {"type": "tool", "state": {"status": "completed"}},
        {"type": "retry"},
        {"type": "patch"},
        {"type": "agent"},
        {"type": "snapshot"},
    ],
)
def test_what_is_no_part_is_refused(value: dict[str, Any]) -> None:
    """A part without its content is none."""
    with pytest.raises(InvalidInput):
        part(**value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, {"agent": "build", "model": {"providerID": "p", "modelID": "after"}, "time": {"created": 7}}),
        ({"mode": "plan"}, {"agent": "plan"}),
        ({"time": {"created": 5.0}}, {"time": {"created": 5}}),
        ({"time": "late"}, {"time": {"created": 7}}),
        (
            {"variant": "high", "model": {"providerID": "a", "modelID": "b"}},
            {"model": {"providerID": "a", "modelID": "b", "variant": "high"}},
        ),
        ({"model": {"providerID": "a"}}, {"model": {"providerID": "a", "modelID": "unknown"}}),
        ({"summary": {"title": "t"}}, {"summary": {"title": "t", "diffs": []}}),
        (
            {"summary": {"diffs": [{"file": "a", "before": "x", "after": "y"}]}},
            {
                "summary": {
                    "diffs": [{"file": "a", "additions": 0, "deletions": 0, "before": "x", "after": "y"}]
                }
            },
        ),
        ({"system": None}, {}),
    ],
)
def test_an_old_question_is_mended(value: dict[str, Any], expected: dict[str, Any]) -> None:
    """Agent, model, variant and times are put where they belong; unknown fields are kept."""
    made, dropped = message({"role": "user", **value})

    assert made == {**made, **expected}
    assert dropped == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {},
            {
                "agent": "build",
                "mode": "build",
                "parentID": msg(9),
                "cost": 0,
                "tokens": ZERO,
                "modelID": "unknown",
                "providerID": "unknown",
                "path": {"cwd": "/work", "root": "/work"},
            },
        ),
        ({"mode": "plan"}, {"agent": "plan", "mode": "plan"}),
        ({"path": {"cwd": "/a"}}, {"path": {"cwd": "/a", "root": "/a"}}),
        ({"tokens": {"input": 3, "cache": 5}}, {"tokens": {**ZERO, "input": 3}}),
        ({"cost": "free"}, {"cost": 0}),
        ({"time": {"created": 1, "completed": 2.5}}, {"time": {"created": 1, "completed": 2}}),
        (
            {"error": {"name": "Strange", "data": {"message": "odd"}}},
            {"error": {"name": "UnknownError", "data": {"message": "Strange: odd"}}},
        ),
        ({"error": "boom"}, {"error": {"name": "UnknownError", "data": {"message": "boom"}}}),
        ({"system": ["You are"], "future": 1}, {"system": ["You are"], "future": 1}),
    ],
)
def test_an_old_answer_is_mended(value: dict[str, Any], expected: dict[str, Any]) -> None:
    """Agent and mode stand for one another; paths, costs and errors get their shape of today."""
    made, dropped = message({"role": "assistant", **value})

    assert made == {**made, **expected}
    assert dropped == []


def test_a_field_that_cannot_be_mended_is_left_out_and_named() -> None:
    """The message comes without it."""
    made, dropped = message(user(summary=True, format="plain"))

    assert sorted(dropped) == ["format", "summary"]
    assert {"format", "summary"} & set(made) == set()
    assert message(assistant(finish=7))[1] == ["finish"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"status": "pending"}, {"status": "pending", "input": {}, "raw": ""}),
        ({"status": "running", "input": "ls"}, {"input": {"value": "ls"}, "time": {"start": 7}}),
        (
            {"status": "completed", "output": {"a": 1}, "input": None},
            {"output": '{"a":1}', "title": "", "metadata": {}, "time": {"start": 7, "end": 7}},
        ),
        (
            {"status": "completed", "output": "x", "time": {"start": 1.0, "end": 2.0, "compacted": 3.0}},
            {"time": {"start": 1, "end": 2, "compacted": 3}},
        ),
        ({"status": "error", "metadata": 7}, {"error": "", "metadata": {}}),
        (
            {"status": "completed", "output": "", "attachments": [{"url": "data:,x"}, {"mime": "a/b"}, 7]},
            {
                "attachments": [
                    {
                        "type": "file",
                        "id": "prt_1ddf10d2000200000yD8FuHCIl",
                        "sessionID": PARENT,
                        "messageID": msg(1),
                        "mime": "application/octet-stream",
                        "url": "data:,x",
                    }
                ]
            },
        ),
    ],
)
def test_an_odd_tool_call_is_mended(state: dict[str, Any], expected: dict[str, Any]) -> None:
    """Input that is no object, output that is no text, times that are missing, files without a name."""
    made, dropped = part(type="tool", tool="bash", state=state)

    for attachment in made["state"].get("attachments", []):
        attachment["id"] = "prt_1ddf10d2000200000yD8FuHCIl"
    assert made["callID"] == prt(2)
    assert made["state"] == {**made["state"], **expected}
    assert dropped == []


def test_other_parts_are_mended() -> None:
    """Each gets what it lacks; a source that does not fit is left out."""
    assert part(type="reasoning", text="r")[0]["time"] == {"start": 7}
    assert part(type="step-finish")[0]["tokens"] == ZERO
    assert part(type="compaction")[0]["auto"] is False
    assert part(type="subtask", prompt="p")[0]["agent"] == "general"
    assert part(type="patch", hash="h", files=["a", 7])[0]["files"] == ["a"]
    assert part(type="file", url="u")[0]["mime"] == "application/octet-stream"
    assert part(type="agent", name="n", source="?")[1] == ["source"]
    assert part(type="text", text="t", time={"end": 9})[0]["time"] == {"start": 7, "end": 9}


def test_an_empty_session_is_mended() -> None:
    """Missing texts are empty, times are now, and the slug is the same each time."""
    made = [mend_session.session({}, id=PARENT, project="p", now_ms=5, placement="here")[0] for _ in range(2)]

    assert made[0] == made[1]
    assert as_json(made[0]) == {
        "id": PARENT,
        "slug": made[0].slug,
        "projectID": "p",
        "directory": "",
        "title": "",
        "version": "",
        "time": {"created": 5, "updated": 5},
        "placement": "here",
    }


def assert_storable(kind: stored.Kind, made: Any) -> None:
    """It is of our type, and what is written of it is read back as the same."""
    value = wire.convert(stored.type_of(kind), made)
    assert wire.convert(stored.type_of(kind), as_json(value)) == value


@pytest.mark.ci
@given(
    st.dictionaries(st.sampled_from(["role", "time", "model", "summary", "error", "path", "tokens"]), JSON)
)
def test_no_message_breaks_the_mending(value: dict[str, Any]) -> None:
    """Whatever JSON a message is made of, it is mended or refused, and what is mended can be stored."""
    for role in ("user", "assistant"):
        try:
            made, _ = message({**value, "role": role})
        except InvalidInput:
            continue
        assert_storable("message", made)


@pytest.mark.ci
@given(
    st.sampled_from(sorted(mend_part._TYPES)),
    st.dictionaries(
        st.sampled_from(["text", "time", "state", "tool", "url", "tokens", "files", "error"]), JSON
    ),
    st.dictionaries(st.sampled_from(["input", "output", "time", "metadata", "attachments", "error"]), JSON),
    st.sampled_from(["pending", "running", "completed", "error", None]),
)
def test_no_part_breaks_the_mending(type_: str, value: Any, state: Any, status: Any) -> None:
    """Whatever JSON a part is made of, it is mended or refused, and what is mended can be stored."""
    if status is not None:
        value = {**value, "state": {**state, "status": status}}
    try:
        made, _ = part(**{**value, "type": type_})
    except InvalidInput:
        return
    assert_storable("part", made)


@pytest.mark.ci
@given(st.dictionaries(st.sampled_from(["time", "model", "summary", "revert", "permission", "tokens"]), JSON))
def test_no_session_breaks_the_mending(value: dict[str, Any]) -> None:
    """A session is always mended: all that it needs can be filled in."""
    made, _ = mend_session.session(value, id=PARENT, project="p", now_ms=5, placement="here")

    assert_storable("session", as_json(made))
