"""What an epoch pins of tools that a plugin has defined anew."""

from msgspec.structs import replace

from holdfast.provider.request import prefix
from holdfast.provider.request.request import ToolDefinition
from holdfast.runtime.epoch import pins
from holdfast.schema.agent import Agent
from tests.provider.history import CLAUDE as MODEL

BUILD, PLAN = (Agent(name=name, mode="primary", permission=[], options={}) for name in ("build", "plan"))
OWN = ToolDefinition(name="act", description="Act.", input={"type": "object"})
SHAPED = replace(OWN, description="Act gently.", input={"type": "object", "properties": {"why": {}}})
OTHER = replace(OWN, input={"type": "object", "required": []})


def test_what_a_plugin_made_stays_pinned_as_long_as_the_tool_declares_the_same() -> None:
    """For every agent of the epoch; a tool with other arguments is pinned anew, and that is the reason."""
    assert pins.unpinned({}, BUILD, MODEL, [OWN]) == [OWN]
    first = pins.pinned({}, BUILD, MODEL, [OWN], {"act": SHAPED})
    assert first.pin.tools == (SHAPED,)
    assert first.pins is not None
    for agent in (BUILD, PLAN):
        assert pins.unpinned(first.pins, agent, MODEL, [OWN]) == []
        again = pins.pinned(first.pins, agent, MODEL, [OWN])
        assert (again.pin.tools, again.moved) == ((SHAPED,), None)

    assert pins.unpinned(first.pins, BUILD, MODEL, [OTHER]) == [OTHER]
    moved = pins.pinned(first.pins, BUILD, MODEL, [OTHER])
    assert (moved.pin.tools, moved.moved) == ((OTHER,), "tools")
    assert moved.pins is not None
    assert pins.unpinned(moved.pins, BUILD, MODEL, [OTHER]) == []


def test_a_pin_that_comes_back_knows_what_its_tools_declared() -> None:
    """A fork from before a move goes on with it, and nothing moves again."""
    first = pins.pinned({}, BUILD, MODEL, [OWN], {"act": SHAPED})
    assert first.pins is not None
    moved = pins.pinned(first.pins, BUILD, MODEL, [OTHER])
    assert moved.pins is not None
    names = prefix.names_of((*first.pin.tools, *first.pin.system))
    back = pins.restored(moved.pins, pins.Sent(names))
    assert pins.pinned(back.pins, BUILD, MODEL, [OWN]).pin.tools == (SHAPED,)
    assert pins.unpinned(back.pins, BUILD, MODEL, [OWN]) == []
