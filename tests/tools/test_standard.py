"""The built-in set as a whole: what it is, and what it costs in each request."""

import json
from typing import Any

from holdfast.clock import SystemClock
from holdfast.provider.request.size import estimate
from holdfast.tools.standard import standard_tools

NOTHING: Any = None
LOOKING = {"glob", "grep", "list", "todowrite", "todoread", "question", "skill"}


def costs() -> dict[str, int]:
    """About how many tokens each definition has."""
    registry = standard_tools(NOTHING, SystemClock(), NOTHING, NOTHING, NOTHING)
    tools = [found.tool for name in sorted(registry.names()) if (found := registry.current(name))]
    return {
        tool.name: estimate(
            json.dumps({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
        )
        for tool in tools
    }


def test_the_definitions_leave_room_for_the_work() -> None:
    """At most 3,500 tokens for all, `bash` to come; 1,600 for those that look and tell."""
    found = costs()
    assert set(found) >= LOOKING
    assert sum(found.values()) <= 3_500, found
    assert sum(found[name] for name in LOOKING) <= 1_600, found


def test_what_a_crash_cut_off_may_be_run_again() -> None:
    """None of them changes anything twice."""
    registry = standard_tools(NOTHING, SystemClock(), NOTHING, NOTHING, NOTHING)
    found = {name: registry.current(name) for name in LOOKING}
    assert {name for name, each in found.items() if each is None or not each.tool.repeatable} == set()
    assert registry.current("invalid") is None
