"""A tree of sessions spends no more than its budget, and what it spent never falls."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.runtime.budget.reservations import root_of
from holdfast.schema.budget import Budget
from holdfast.schema.fault import BudgetFault
from holdfast.schema.message import AssistantMessage
from holdfast.testing.mock_provider.script import Say, Usage
from holdfast.testing.scripted_provider import Step
from tests.stories import inside
from tests.stories.world import World


async def test_a_turn_that_the_budget_does_not_reach_for_is_not_begun(world: World) -> None:
    """The error has a name and says how much; a larger budget lets the session go on."""
    async with world.open(Step(Say("one"), usage=Usage(input=900, output=100)), Step(Say("two"))) as (
        hf,
        script,
    ):
        session = await world.session(hf)
        await hf.sessions.set_budget(session, Budget(tokens=12_000))
        await hf.sessions.process(session, "first")
        await hf.sessions.set_budget(session, Budget(tokens=9_000))
        refused = await hf.sessions.process(session, "second", check=False)
        assert isinstance(refused.info, AssistantMessage)
        assert isinstance(refused.info.error, BudgetFault)
        assert "the budget of 9000 tokens does not reach" in refused.info.error.data.message
        assert len(script.requests) == 1
        spent = (await hf.sessions.get(session)).spent
        assert spent is not None
        assert (spent.tokens, spent.reserved) == (1_000, {})
        await hf.sessions.set_budget(session, None)
        await hf.sessions.process(session, "third")


async def test_money_is_counted_for_the_whole_tree(world: World) -> None:
    """A child's turn is on its root's account."""
    async with world.open(Step(Say("one"), usage=Usage(input=1_000_000, output=0))) as (hf, script):
        root = await world.session(hf)
        child = await world.session(hf, parent=root)
        await hf.sessions.set_budget(root, Budget(cost=1.01))
        with pytest.raises(InvalidInput, match="its budget is that of the root"):
            await hf.sessions.set_budget(child, Budget(cost=1))
        await hf.sessions.process(child, "spend it")
        refused = await hf.sessions.process(root, "and more", check=False)
        spent = (await hf.sessions.get(root)).spent

    assert spent is not None
    assert (spent.cost, spent.tokens, spent.unknown, spent.reserved) == (1.0, 1_000_000, None, {})
    assert isinstance(refused.info, AssistantMessage)
    assert isinstance(refused.info.error, BudgetFault)
    assert "the budget of $1.01 does not reach" in refused.info.error.data.message
    assert len(script.requests) == 1


async def test_a_limit_in_money_with_an_unknown_price_stops_unless_it_is_allowed(world: World) -> None:
    """Unknown is not free."""
    world.settings(
        provider={
            "scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": "http://127.0.0.1:9/v1"},
                "models": {"m": {"limit": {"context": 4000, "output": 100}}},
            }
        }
    )
    async with world.open(Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.set_budget(session, Budget(cost=1))
        refused = await hf.sessions.process(session, "x", check=False)
        assert isinstance(refused.info, AssistantMessage)
        assert isinstance(refused.info.error, BudgetFault)
        assert "is not known" in refused.info.error.data.message
        assert script.requests == []
        await hf.sessions.set_budget(session, Budget(cost=1, unknown_price="allow"))
        await hf.sessions.process(session, "y")
        spent = (await hf.sessions.get(session)).spent
        assert spent is not None
        assert (spent.cost, spent.tokens, spent.unknown, spent.reserved) == (0, 15, True, {})


async def test_what_was_spent_stays_spent_when_the_messages_go(world: World) -> None:
    """The session's own totals follow its messages; `spent` does not."""
    async with world.open(Step(Say("one"))) as (hf, _):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "x")
        before = (await hf.sessions.get(session)).spent
        await hf.sessions.remove_message(session, answer.info.id)
        after = await hf.sessions.get(session)

    assert after.cost == 0
    assert after.spent == before
    assert before is not None
    assert before.tokens == 15


async def test_the_root_of_a_tree_is_looked_for_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session never changes its parent, and each turn needs its root several times."""
    async with world.open() as (hf, _):
        root = await world.session(hf)
        child = await world.session(hf, parent=root)
        grandchild = await hf.sessions.get(await world.session(hf, parent=child))
        engine, asked = inside.engine(hf), list[str]()
        plain = hf.store.session

        async def noted(id: str) -> object:
            asked.append(id)
            return await plain(id)

        monkeypatch.setattr(hf.store, "session", noted)
        found = [await root_of(engine, grandchild) for _ in range(3)]

    assert found == [root] * 3
    assert asked == [child, root]
