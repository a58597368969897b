"""The blocks of a request, which must only ever be extended."""

from msgspec.structs import replace

from holdfast.provider.request import prefix
from holdfast.provider.request.request import CacheMarks, Request, Text, ToolDefinition, User
from tests import prefixes
from tests.provider.history import GPT

ASK = User(content=(Text(text="q"),))
TOOL = ToolDefinition(name="t", description="d", input={"b": 1, "a": {"z": 1, "y": 2}})
REQUEST = Request(model=GPT, system=("s",), messages=(ASK,), tools=(TOOL,))


def test_marks_and_settings_are_no_part_of_the_prefix() -> None:
    """They move with every turn."""
    other = replace(REQUEST, marks=CacheMarks(messages=(0,)), body={"x": 1}, session="s")

    assert prefixes.blocks(other) == prefixes.blocks(REQUEST)
    assert prefix.named(other) == prefix.named(REQUEST)


def test_the_order_of_keys_does_not_move_it() -> None:
    """A schema is the same schema however it was put together."""
    again = replace(TOOL, input={"a": {"y": 2, "z": 1}, "b": 1})

    assert prefix.named(replace(REQUEST, tools=(again,))) == prefix.named(REQUEST)


def test_an_extension_differs_nowhere_and_a_change_is_found() -> None:
    """By the index of the first block that differs."""
    before = prefixes.blocks(REQUEST)
    longer = prefixes.blocks(replace(REQUEST, messages=(ASK, ASK)))
    changed = prefixes.blocks(replace(REQUEST, system=("t",), messages=(ASK, ASK)))

    assert prefixes.first_difference(before, longer) is None
    assert prefixes.first_difference(before, changed) == 1
    assert prefixes.first_difference(longer, before) == 3
    assert prefix.named(REQUEST) != prefix.named(replace(REQUEST, messages=(ASK, ASK)))
