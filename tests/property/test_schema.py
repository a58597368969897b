"""Laws of the schema: nothing is lost or changed on the way to JSON and back."""

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.errors import Conflict, InvalidInput
from holdfast.schema import ids, stored, usage
from holdfast.schema.event import Event
from holdfast.schema.tool_state import ToolCompleted, ToolError, ToolState, advance
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.schema.wire import Record, decode, encode
from tests.examples import examples
from tests.schema.fake_clock import FakeClock
from tests.schema.strategies import JSON, TYPES, values, with_unknown

each_type = pytest.mark.parametrize("type_", TYPES.values(), ids=TYPES.keys())
each_kind = pytest.mark.parametrize("kind", stored.KINDS)
some = settings(max_examples=examples(30))  # for each type
WRAP_MS = 1_786_706_395_136  # 2026-08-14T11:19:55.136Z


def head(value: Any) -> dict[str, Any]:
    """What the store's columns hold of a record."""
    return {
        "id": getattr(value, "id", "x"),
        "session": getattr(value, "session_id", None),
        "parent": getattr(value, "message_id", None),
    }


def without_extra(value: Any) -> Any:
    """A record, or a list of them, with nothing kept."""
    if isinstance(value, list):
        return [without_extra(item) for item in value]
    return replace(value, extra=None)


@each_type
@some
@given(st.data())
def test_decode_of_encode_is_identity(type_: Any, data: st.DataObject) -> None:
    """Every value of every type comes back from JSON as it was."""
    value = data.draw(values(type_))

    assert decode(type_, encode(value)) == value


@pytest.mark.ci
@each_type
@some
@given(st.data())
def test_no_optional_field_is_written_as_null(type_: Any, data: st.DataObject) -> None:
    """What JSON says null of stands inside opaque JSON, never for an absent field."""
    value = data.draw(values(type_))

    def check(node: Any) -> None:
        if isinstance(node, msgspec.Struct):
            for name, wire in zip(node.__struct_fields__, node.__struct_encode_fields__, strict=True):
                item = getattr(node, name)
                assert item is not None or wire not in json.loads(encode(node))
                check(item)
        elif isinstance(node, list):
            for item in node:
                check(item)

    check(value)


@pytest.mark.ci
@each_kind
@some
@given(st.data())
def test_unknown_fields_survive_at_any_depth(kind: stored.Kind, data: st.DataObject) -> None:
    """A record's JSON with unknown fields anywhere decodes to the known value and encodes with all of it."""
    value, tree = data.draw(with_unknown(stored.type_of(kind)))
    decoded = decode(stored.type_of(kind), json.dumps(tree))

    assert json.loads(encode(decoded)) == tree
    assert without_extra(decoded) == value
    assert decode(stored.type_of(kind), encode(decoded)) == decoded


@pytest.mark.ci
@given(st.data())
def test_records_inside_events_keep_their_unknown_fields(data: st.DataObject) -> None:
    """An event carries a record whole; what the event itself does not know is dropped."""
    _, tree = data.draw(with_unknown(Event))
    event = decode(Event, json.dumps(tree))
    again = json.loads(encode(event))

    for name in ("info", "part", "diff", "todos"):
        assert again["properties"].get(name) == tree["properties"].get(name) or not hasattr(
            event.properties, name
        )


@pytest.mark.ci
@each_kind
@some
@given(st.data())
def test_whole_is_the_inverse_of_strip(kind: stored.Kind, data: st.DataObject) -> None:
    """What the store keeps, with its columns, is the record: same JSON object, same value."""
    _, tree = data.draw(with_unknown(stored.type_of(kind)))
    value = decode(stored.type_of(kind), json.dumps(tree))
    kept = stored.strip(kind, value)
    columns = head(value)

    if stored.HEADS[kind]:
        assert not set(stored.HEADS[kind]) & json.loads(kept).keys()
    assert json.loads(stored.whole(kind, kept, **columns)) == tree
    assert stored.load(kind, kept, **columns) == value


@given(JSON)
def test_hostile_json_is_a_record_or_invalid(tree: Any) -> None:
    """Any JSON at all is either decoded or refused as InvalidInput, for every type."""
    data = encode(tree)

    for type_ in TYPES.values():
        try:
            decode(type_, data)
        except InvalidInput as error:
            assert "\n" not in str(error)  # noqa: PT017 -- most draws are refused, some are not


@given(st.binary(max_size=200))
def test_hostile_bytes_are_invalid(data: bytes) -> None:
    """Any bytes at all are refused as InvalidInput, or were JSON of a session after all."""
    try:
        decode(stored.type_of("session"), data)
    except InvalidInput as error:
        assert len(str(error)) <= 300  # noqa: PT017


@pytest.mark.ci
@given(values(ToolState), values(ToolState))
def test_a_settled_call_never_changes(old: Any, new: Any) -> None:
    """Whatever follows a settled state is that state, give or take the mark of pruning."""
    if not isinstance(old, (ToolCompleted, ToolError)):
        return
    try:
        result = advance(old, new)
    except Conflict:
        return

    if isinstance(old, ToolCompleted):
        result = replace(result, time=replace(result.time, compacted=old.time.compacted))
    assert result == old


counts = st.integers(0, 2**53)
tokens = st.builds(
    Tokens,
    input=counts,
    output=counts,
    reasoning=counts,
    cache=st.builds(CacheTokens, read=counts, write=counts),
)


@given(tokens, tokens)
def test_subtract_undoes_add(one: Tokens, other: Tokens) -> None:
    """(a + b) - b = a."""
    assert usage.subtract(usage.add(one, other), other) == one


bodies = st.text(max_size=40) | st.text(alphabet="0123456789abcdefgzZ_-", max_size=40)
clocks = st.integers(0, 2 * WRAP_MS)


@given(bodies, clocks)
def test_above_is_greater_than_any_floor(floor: str, now_ms: int) -> None:
    """Whatever stands in a session, and whatever the clock says, the next id sorts after it."""
    minted = ids.Mint(FakeClock(now_ms)).above("msg", floor)

    assert ids.body(minted) > floor


@given(st.text(alphabet=ids.BASE62 + "_-", max_size=100), clocks)
def test_above_of_above_rises_and_does_not_grow(floor: str, now_ms: int) -> None:
    """Ids minted one above another rise, and are at most one tail longer than the floor was."""
    mint = ids.Mint(FakeClock(now_ms))
    chain = [floor]
    for _ in range(100):
        chain.append(ids.body(mint.above("prt", chain[-1])))

    assert chain == sorted(set(chain))
    assert max(len(body) for body in chain) <= max(26, len(floor) + 14)


@given(st.lists(clocks, min_size=1, max_size=30))
def test_ids_of_one_mint_rise_whatever_the_clock_does(times: list[int]) -> None:
    """Between two wraps ids rise and fall as asked, though the clock stalls, leaps and goes back."""
    clock = FakeClock(0)
    up, down = ids.Mint(clock), ids.Mint(clock)
    rising, falling = [], []
    for time_ms in times:
        clock.ms = WRAP_MS + time_ms % 2**35
        rising.append(up.ascending("msg"))
        falling.append(down.descending("ses"))

    assert rising == sorted(set(rising))
    assert falling == sorted(set(falling), reverse=True)


@given(clocks, st.integers(-(2**35) + 1, 2**35 - 2))
def test_timestamp_is_exact_within_half_a_wrap(now_ms: int, off_ms: int) -> None:
    """A reference that is less than 397 days off is near enough to read the time of an id."""
    minted = ids.Mint(FakeClock(now_ms)).ascending("msg")

    assert now_ms == ids.timestamp(minted, now_ms + off_ms)


def test_every_record_keeps_unknown_fields() -> None:
    """Each type that the store keeps is a Record."""
    types = [member for type_ in map(stored.type_of, stored.KINDS) for member in get_args(type_) or (type_,)]

    assert [member for member in types if not issubclass(member, Record)] == []
