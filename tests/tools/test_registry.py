"""Which tool a name means: the latest, a Location's before the application's, and none that was replaced."""

import pytest
from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.tools.registry import Registry


def made(name: str, words: str = "") -> Tool:
    """A tool of that name."""

    @tool(name=name, description=words)
    async def nothing(context: ToolContext) -> str:
        return words

    return nothing


def test_the_latest_registration_wins_and_closing_it_reveals_the_one_before() -> None:
    """Closing twice is closing once; the order of closing does not matter."""
    registry = Registry()
    first, second, third = (registry.register(made("a", words)) for words in ("1", "2", "3"))

    assert registry.current("a") is third
    second.close()
    third.close()
    third.close()
    assert registry.current("a") is first
    first.close()
    assert registry.current("a") is None
    assert registry.names() == set()


def test_a_locations_tool_hides_the_applications() -> None:
    """Elsewhere the application's is still what it was."""
    application = Registry()
    location = Registry(application)
    ours, theirs = application.register(made("a")), location.register(made("a"))
    application.register(made("b"))

    assert location.current("a") is theirs
    assert application.current("a") is ours
    assert [each.name for each in location.materialise().tools] == ["a", "b"]
    assert [each.name for each in location.materialise(without={"a"}).tools] == ["b"]


def test_a_call_of_a_tool_that_was_replaced_since_is_stale() -> None:
    """The model was shown another definition."""
    registry = Registry()
    registration = registry.register(made("a"))
    shown = registry.materialise()
    assert not shown.is_stale("a")

    newer = registry.register(made("a"))
    assert shown.is_stale("a")
    assert shown.find("a") is registration.tool
    newer.close()
    assert not shown.is_stale("a")
    registration.close()
    assert shown.is_stale("a")
    assert not shown.is_stale("unknown")


def test_a_name_in_another_case_is_forgiven() -> None:
    """Models vary it."""
    registry = Registry()
    registry.register(made("read"))
    shown = registry.materialise()

    assert shown.find("Read") is not None
    assert shown.find("wread") is None


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "é", "a/b"])
def test_a_name_that_providers_refuse_is_refused_at_once(name: str) -> None:
    """Letters, digits, _ and -."""
    with pytest.raises(InvalidInput, match="is no name of a tool"):
        Registry().register(replace(made("x"), name=name))
