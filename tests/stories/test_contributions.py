"""What programs contribute to the System Context, as the model is told it."""

import logging

import pytest
from msgspec.structs import replace

from holdfast.context.registry import SystemContextRegistry
from holdfast.context.system_context import SystemContext
from holdfast.schema.message import AssistantMessage
from tests.stories.epochs import Fact, says
from tests.stories.world import World


def contribute(registry: SystemContextRegistry, key: str, source: str, value: str) -> None:
    """A contribution under `key` that makes one source."""
    made = SystemContext.make(replace(Fact(value).source(), key=source))
    registry.register(key, lambda: made)


@pytest.mark.parametrize("where", ["application", "directory"])
async def test_a_source_that_contributions_beneath_one_another_make_fails_no_turn(
    world: World, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    """The first of them in the order of the context counts, and whoever operates the process is told."""
    key = f"{where}/of"
    async with world.open(*says("a", "b")) as (hf, script):
        session = await world.session(hf)
        contribute(hf.context, key, f"{key}/x", "outer")
        inside = hf.context if where == "application" else hf.context_at(world.project)
        contribute(inside, f"{key}/x", f"{key}/x", "inner")
        with caplog.at_level(logging.WARNING, logger="holdfast"):
            answers = [await hf.sessions.process(session, text) for text in ("one", "two")]

    errors = [each.info.error for each in answers if isinstance(each.info, AssistantMessage)]
    assert errors == [None, None]
    said = "\n".join(script.requests[1].system)
    assert ("The fact is outer." in said, "inner" in said) == (True, False)
    told = f"the context source {key}/x is made twice; the first one counts, and the other is left out"
    assert [line for line in caplog.messages if key in line] == [told]
