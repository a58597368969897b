"""OpenAI's own role for Mid-Conversation System Messages, and sessions that began before it was used."""

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.app import Holdfast
from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.request import Request, SystemUpdate
from holdfast.provider.wire.wire import Endpoint
from holdfast.store.batch import Batch
from holdfast.store.put import put
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step
from tests.provider.talking import ADAPTERS, a_model
from tests.stories.epochs import Calendar, epochs, extends, says
from tests.stories.world import World

OPENAI = Endpoint(base_url="https://api.openai.com/v1")
LONG = "a long story " * 400


def roles(request: Request, wire: WireKind) -> list[str | None]:
    """Who speaks in each message, as OpenAI would be sent the request for a model with the role."""
    model = a_model(wire, npm="@ai-sdk/openai", api_id="gpt-5")
    return [each.get("role") for each in sent(replace(request, model=model))]


def sent(request: Request) -> list[dict[str, Any]]:
    body = msgspec.json.decode(ADAPTERS[request.model.wire].encode(request, OPENAI).body)
    found = body.get("input") or body["messages"]
    assert isinstance(found, list)
    return found


async def under_rules(hf: Holdfast, session: str, rules: int) -> None:
    """The epoch in force as a version with older rules stored it."""
    *_, epoch = await epochs(hf, session)
    await hf.store.commit(Batch((put(replace(epoch, lowering=rules)),)))


async def test_a_new_session_uses_the_role_from_its_first_epoch_on(world: World) -> None:
    """A change of the date is said by the developer, on both wires, and each request extends the last."""
    clock = Calendar()
    async with world.open(*says("a", "b", "c"), clock=clock) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        clock.days = 1
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
    _, second, third = script.requests

    assert roles(second, WireKind.OPENAI_RESPONSES) == ["user", "assistant", "user", "developer"]
    assert roles(second, WireKind.OPENAI_CHAT)[1:] == ["user", "assistant", "user", "developer"]
    assert roles(third, WireKind.OPENAI_CHAT)[5:] == ["assistant", "user"]
    assert extends(second, third)


async def test_a_session_begun_under_the_old_rule_keeps_it_until_its_next_epoch(world: World) -> None:
    """Over the upgrade the text stays wrapped, byte for byte; after a compaction the role is used."""
    world.settings(compaction={"tail_turns": 1})
    clock = Calendar()
    async with world.open(Step(Say(LONG)), clock=clock) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, LONG)
        await under_rules(hf, session, 2)
    clock.days = 1
    async with world.open(*says("b", "c", "summary", "d", "e"), clock=clock) as (hf, later):
        await hf.sessions.process(session, "two")
        await hf.sessions.process(session, "three")
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        await hf.sessions.process(session, "four")
        clock.days = 2
        await hf.sessions.process(session, "five")
        kept = [each.lowering for each in await epochs(hf, session)]
    second, third, _, _, last = later.requests

    assert kept == [2, 3]
    assert extends(script.requests[0], second)
    assert extends(second, third)
    assert [each.native for each in third.messages if isinstance(each, SystemUpdate)] == [False]
    for wire in (WireKind.OPENAI_RESPONSES, WireKind.OPENAI_CHAT):
        assert "developer" not in roles(third, wire)
        assert roles(last, wire)[-1] == "developer"
