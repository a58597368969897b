"""Schemas of callers: judged off the event loop, and never for longer than a bound."""

import os
from typing import Any

import anyio
import pytest

from holdfast.errors import InvalidInput
from holdfast.tools import schema_check, schema_rules, structured

TEXT = {"type": "object", "properties": {"a": {"type": "string"}}}
RUNAWAY = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}


def tree(depth: int) -> Any:
    """A value for `BRANCHING`: each level is looked at twice."""
    return {"next": tree(depth - 1)} if depth else {}


BRANCHING = {
    "type": "object",
    "anyOf": [
        {"properties": {"next": {"$ref": "#"}}, "required": ["no"]},
        {"properties": {"next": {"$ref": "#"}}, "required": ["neither"]},
    ],
}


NESTED: Any = {"properties": {"a": {}}, "unevaluatedProperties": True}
for _ in range(40):
    NESTED = {"allOf": [NESTED], "unevaluatedProperties": True}
MANY = {"type": "object", "properties": {"a": {"items": {"anyOf": [{"const": n} for n in range(2_000)]}}}}


@pytest.mark.ci
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (RUNAWAY, {"a": "a" * 60 + "!"}),
        (BRANCHING, tree(60)),
        ({"type": "object", **NESTED}, {"a": 1}),
        (MANY, {"a": [1_999] * 20_000}),
    ],
    ids=["pattern", "references", "nested", "branches"],
)
async def test_a_check_without_an_end_is_ended_and_nobody_waits_for_it(
    schema: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern that backtracks for ever, work that doubles with each level, or grows with a product: other
    work goes on, and the check ends with its bound of processor time.
    """
    monkeypatch.setattr(structured, "CPU_S", 1)
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            await anyio.sleep(0.001)
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        with pytest.raises(schema_check.Unjudged, match="the check takes more than 1 s, or too much memory"):
            await structured.errors(schema, value)
        group.cancel_scope.cancel()
    assert turns > 10


@pytest.mark.ci
async def test_many_checks_at_once_wait_for_one_another_and_are_all_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No right answer is called wrong because the machine is busy: each processor has one check at a time."""
    real, running, most = anyio.run_process, 0, 0

    async def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await real(*arguments, **named)
        finally:
            running -= 1

    monkeypatch.setattr(anyio, "run_process", counted)
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
    }
    found: list[list[str]] = []

    async def one(number: int) -> None:
        found.append(await structured.errors(schema, {"a": number}))

    async with anyio.create_task_group() as group:
        for number in range(24):
            group.start_soon(one, number)
    assert found == [[]] * 24
    assert most <= (os.cpu_count() or 1)


@pytest.mark.ci
@pytest.mark.parametrize("plain", [True, False], ids=["thread", "process"])
async def test_both_ways_of_judging_say_the_same(plain: bool) -> None:
    """A thread or a process: the same problems, in the same words, the first few of them."""
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer", "minimum": 1} for name in "abcdefg"},
        "required": ["a"],
        **({} if plain else {"$defs": {"x": {"$ref": "#"}}}),
    }
    assert schema_rules.is_plain(schema) == plain

    assert await structured.errors(schema, {"a": 1}) == []
    assert await structured.errors(schema, {"a": 0, "b": "x"}) == [
        "a: 0 is less than the minimum of 1",
        "b: 'x' is not of type 'integer'",
    ]
    assert await structured.errors(schema, {}) == ["the answer: 'a' is a required property"]
    assert len(await structured.errors(schema, dict.fromkeys("abcdefg", 0))) == schema_rules.ERRORS_MAX
    await structured.check_schema(schema)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "objekt"}, "'objekt' is not valid under any of the given schemas"),
        ({"type": "array"}, "must be an object; put what you want into a property"),
        ({"properties": {"a": {"pattern": "("}}}, "'(' is not a 'regex'"),
        ({"patternProperties": {"[": {}}}, "'[' is not a 'regex'"),
        ({"description": "x" * 300_000}, "has 300018 bytes; 262144 are allowed"),
    ],
    ids=["type", "root", "pattern", "name", "size"],
)
async def test_what_is_no_schema_is_refused(schema: Any, words: str) -> None:
    """At admission, with what is wrong."""
    with pytest.raises(InvalidInput) as raised:
        await structured.check_schema(schema)
    assert words in str(raised.value)


async def test_nothing_is_fetched_for_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address in a schema is no reason to go there."""
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}}
    assert await structured.errors(schema, {"a": 1}) == [
        "the schema cannot be applied: _WrappedReferencingError"
    ]
