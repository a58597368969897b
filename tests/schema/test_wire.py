"""The codec: strict, forgiving of what it does not know, and never at a loss for an error."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.schema.event import Event, SessionProperties, SessionUpdated
from holdfast.schema.extra import Extra
from holdfast.schema.ids import MessageID, PartID, ProjectID, SessionID
from holdfast.schema.part import CompactionPart, Part, StepStartPart, TextPart, ToolPart
from holdfast.schema.session import Session, SessionTime
from holdfast.schema.session_lists import Todo
from holdfast.schema.tool_state import Completed, ToolCompleted, ToolPending, ToolRunning
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import convert, decode, encode, wire_name

TEXT = '{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"text","text":"hi"'
TOOL = (
    '{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"tool","callID":"c","tool":"read",'
    '"state":{"status":"completed","input":{},"output":"","title":"","metadata":{},'
    '"time":{"start":1,"end":2%s}%s%s},"metadata":{"k":null}%s}'
)
SESSION = Session(
    id=SessionID("ses_1"),
    slug="calm-otter",
    project_id=ProjectID("global"),
    directory="/d",
    title="t",
    version="1",
    time=SessionTime(created=1, updated=2),
)
HEAD: dict[str, Any] = {
    "id": PartID("prt_1"),
    "session_id": SessionID("ses_1"),
    "message_id": MessageID("msg_1"),
}


def attachment(more: str = "") -> str:
    return (
        f'{{"id":"prt_2","sessionID":"ses_1","messageID":"msg_1","type":"file","mime":"m","url":"u"{more}}}'
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "truncated"),
        ("{", "truncated"),
        ("nonsense", "malformed"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "missing required field `type`"),
        (TEXT + ',"time":{"start":-1}}', "at `$.time.start`"),
        (TEXT + ',"time":{"start":"1"}}', "at `$.time.start`"),
        (TEXT + ',"unknown":1,"time":{"start":"1"}}', "at `$.time.start`"),
        (TEXT + ',"text":null}', "at `$.text`"),
        (TEXT.replace('"text",', '"poem",') + "}", "Invalid value 'poem' - at `$.type`"),
        (TEXT.replace('"text",', "12,") + "}", "at `$.type`"),
        (TEXT + "} trailing", "trailing characters"),
        (TEXT + ',"metadata":{"n":NaN}}', "malformed"),
        (TEXT + ',"metadata":{"n":1e999}}', "out of range"),
    ],
)
def test_refuses_what_is_no_part(data: str, said: str) -> None:
    """A wrong value is InvalidInput, on one line, with the place of the fault."""
    with pytest.raises(InvalidInput) as caught:
        decode(Part, data)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"\xff", b'"\xff"', b'{"id":"\xff"}', b'{"id":"\\ud800"}', b"\0"])
def test_refuses_bytes_that_are_no_text(data: bytes) -> None:
    """Broken UTF-8 and lone surrogates are InvalidInput."""
    with pytest.raises(InvalidInput):
        decode(Part, data)


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"id":"x","type":"text","metadata":{"a":[', '{"x":['])
def test_refuses_hostile_depth(opening: str) -> None:
    """A hundred thousand brackets are InvalidInput, not a crash, wherever they begin."""
    with pytest.raises(InvalidInput, match="nested too deeply"):
        decode(Part, opening + "[" * 100_000)


@pytest.mark.ci
def test_refuses_a_value_nested_too_deeply_to_write() -> None:
    """What cannot be read back is not written either."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(InvalidInput):
        encode(deep)
    while deep:  # taken apart by hand: the interpreter, too, would go down all the way to free it
        deep = deep[0]  # type: ignore[assignment]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_refuses_to_write_what_is_not_finite(number: float) -> None:
    """NaN and infinity are refused wherever they stand, and not written as null."""
    part = decode(Part, TEXT + ',"future":1}')

    for value in (
        number,
        [number],
        replace(part, metadata={"a": [{"b": number}]}),
        replace(SESSION, cost=number),
    ):
        with pytest.raises(InvalidInput, match="not a finite number"):
            encode(value)


@pytest.mark.parametrize("value", [{"a": object()}, "\ud800", {"a": {1j}}])
def test_refuses_to_write_what_json_cannot_say(value: object) -> None:
    """A foreign object or a lone surrogate is InvalidInput."""
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        encode(value)


def test_a_message_about_hostile_data_stays_short() -> None:
    """A message quotes foreign data only briefly."""
    with pytest.raises(InvalidInput) as caught:
        decode(Part, '{"type":"' + "x" * 10_000 + '\\n"}')

    assert len(str(caught.value)) <= 300


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("id", "id"),
        ("session_id", "sessionID"),
        ("project_id", "projectID"),
        ("call_id", "callID"),
        ("model_id", "modelID"),
        ("is_retryable", "isRetryable"),
        ("no_reply", "noReply"),
        ("client_name", "clientName"),
        ("tail_start_id", "tail_start_id"),
    ],
)
def test_wire_names_are_the_specifications(name: str, wire: str) -> None:
    """snake_case becomes camelCase, id becomes ID, and the one exception stays."""
    assert wire == wire_name(name)


def test_optional_fields_are_absent() -> None:
    """An absent field is not written; null is read as absent."""
    part = TextPart(**HEAD, text="hi")

    assert json.loads(TEXT + "}") == json.loads(encode(part))
    assert part == decode(Part, TEXT + ',"time":null,"metadata":null,"synthetic":null}')


def test_false_and_zero_are_not_absent() -> None:
    """A value that is falsy is still a value."""
    part = CompactionPart(**HEAD, auto=False, overflow=False)

    assert json.loads(encode(part))["auto"] is False
    assert json.loads(encode(part))["overflow"] is False
    assert json.loads(encode(replace(SESSION, cost=0, path="")))["cost"] == 0


def test_numbers_keep_their_kind() -> None:
    """An integer stays an integer, a fraction a fraction, and a very large one is not rounded."""
    tokens = b'{"input":1,"output":2.5,"reasoning":0,"cache":{"read":3,"write":4}}'
    big = TEXT + ',"metadata":{"n":123456789012345678901234567890}}'

    assert tokens == encode(decode(Tokens, tokens))
    assert json.loads(big) == json.loads(encode(decode(Part, big)))


def test_unknown_fields_come_back_where_they_were() -> None:
    """Unknown fields of the record, of nested structs and of list items survive, null ones too."""
    more = ',"future":{"a":[1,null]}'
    data = TOOL % (',"paused":null', f',"attachments":[{attachment()},{attachment(more)}]', more, more)
    part = decode(Part, data)

    assert json.loads(data) == json.loads(encode(part))
    assert sorted(part.extra.names(), key=lambda name: (name.count("."), name)) == [
        "future",
        "state.future",
        "state.time.paused",
        "state.attachments.1.future",
    ]


def test_a_changed_record_keeps_its_unknown_fields() -> None:
    """Replacing a known field leaves the unknown ones."""
    part = replace(decode(Part, TEXT + ',"future":1,"time":{"start":1,"tick":2}}'), text="bye")

    assert json.loads(encode(part)) == json.loads(
        TEXT.replace("hi", "bye") + ',"future":1,"time":{"start":1,"tick":2}}'
    )


def test_kept_fields_of_a_list_need_its_length() -> None:
    """Items have no identity: when the list has changed its length, their unknown fields are let go."""
    item = attachment(',"future":1')
    data = TOOL % ("", f',"attachments":[{item}]', "", "")
    part = decode(Part, data)
    files = part.state.attachments
    longer = replace(part, state=replace(part.state, attachments=[*files, *files]))
    same = replace(part, state=replace(part.state, attachments=[replace(files[0], url="v")]))

    assert b"future" not in encode(longer)
    assert b'"url":"v","future":1' in encode(same)


def test_kept_fields_of_a_tagged_struct_need_its_tag() -> None:
    """What was unknown about one state of a tool call is not said of the next."""
    state = '{"status":"pending","input":{},"raw":"","future":1}'
    head = TEXT.replace('"type":"text","text":"hi"', '"type":"tool","callID":"c","tool":"t"')
    part = decode(Part, f'{head},"state":{state},"more":2}}')
    running = replace(part, state=ToolRunning(input={}, time={"start": 1}))  # type: ignore[arg-type]
    growing = replace(part, state=ToolPending(input={}, raw="{"))

    assert {k: v for k, v in json.loads(encode(running)).items() if k == "more"} == {"more": 2}
    assert "future" not in json.loads(encode(running))["state"]
    assert json.loads(encode(growing))["state"]["future"] == 1


def test_a_known_field_is_never_overwritten_by_a_kept_one() -> None:
    """A kept field whose name we have come to know since gives way to ours."""
    part = TextPart(**HEAD, text="hi", extra=Extra(unknown={"text": "no", "more": 1}, inner={}))

    assert json.loads(encode(part)) == json.loads(TEXT + ',"more":1}')


def test_kept_fields_of_an_absent_struct_are_let_go() -> None:
    """Where there is no object any more, there is nothing to put them into."""
    part = decode(Part, TEXT + ',"time":{"start":1,"tick":2}}')

    assert json.loads(encode(replace(part, time=None))) == json.loads(TEXT + "}")


@pytest.mark.parametrize("value", ["null", "{}", "1", '{"unknown":{}}'])
def test_the_name_of_the_extra_field_is_an_unknown_field(value: str) -> None:
    """No JSON can set, or get lost in, the field that keeps the unknown."""
    for name in ("$extra", "extra"):
        data = f'{TEXT},"{name}":{value}}}'

        assert json.loads(data) == json.loads(encode(decode(Part, data)))


def test_records_in_a_list_keep_their_own() -> None:
    """Each record of a list gathers for itself, so it may leave the list with what it has."""
    data = '[{"content":"a","status":"s","priority":"p","x":1},{"content":"b","status":"s","priority":"p"}]'
    todos = decode(list[Todo], data)

    assert json.loads(data) == json.loads(encode(todos))
    assert encode(todos[1:]) == b'[{"content":"b","status":"s","priority":"p"}]'
    assert encode(todos[:1]) == b'[{"content":"a","status":"s","priority":"p","x":1}]'


def test_an_event_carries_a_record_whole() -> None:
    """A record with unknown fields keeps them inside an event, which has no such place itself."""
    session = decode(Session, encode(SESSION)[:-1] + b',"future":1}')
    event = SessionUpdated(properties=SessionProperties(session_id=session.id, info=session))
    data = json.loads(encode(event))

    assert {"type", "properties"} == data.keys()
    assert data["properties"]["info"]["future"] == 1
    assert event == decode(Event, json.dumps(data | {"dropped": 1}))


def test_equal_records_have_equal_extras() -> None:
    """Records with the same unknown fields are equal, with others not, and all of them can be hashed."""
    one, same, other = (decode(Part, f'{TEXT},"future":{n}}}') for n in (1, 1, 2))

    assert one == same
    assert one != other
    assert hash(one) == hash(same)
    assert "future" in repr(one)


def test_convert_is_decode_for_decoded_json() -> None:
    """Values that were decoded already go the same way."""
    data = TEXT + ',"future":1}'

    assert decode(Part, data) == convert(Part, json.loads(data))
    with pytest.raises(InvalidInput):
        convert(Part, {"type": "text"})


def test_types_made_on_the_fly_are_decoded_too() -> None:
    """More types than the table of decoders holds: still right, and the table stays bounded."""
    for _ in range(600):
        assert decode(list[Todo], b"[]") == []


def test_the_fast_and_the_slow_way_write_the_same_bytes() -> None:
    """Without its kept field, the slow way's output is the fast way's, in the same order."""
    state = ToolCompleted(input={"a": 1}, output="o", title="", metadata={}, time=Completed(start=0, end=0))
    for value in (ToolPart(**HEAD, call_id="c", tool="t", state=state), StepStartPart(**HEAD), SESSION):
        fast = encode(value)
        slow = encode(decode(type(value), fast[:-1] + b',"zz":1}'))

        assert fast[:-1] + b',"zz":1}' == slow
