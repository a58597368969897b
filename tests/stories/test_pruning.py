"""Pruning: old output of tools leaves the model's view where that pays, and never the store."""

from decimal import Decimal

import pytest

from holdfast.provider.catalog.model import Price, Prices
from holdfast.provider.request.lowering import PRUNED
from holdfast.provider.request.request import Request, Results
from holdfast.runtime.epoch import pruning
from holdfast.schema import usage
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.message import (
    AssistantMessage,
    AssistantPath,
    AssistantTime,
    MessageWithParts,
    UserMessage,
)
from holdfast.schema.model import ModelRef
from holdfast.schema.part import ToolPart
from holdfast.schema.times import Created
from holdfast.schema.tool_state import Completed, ToolCompleted
from tests.stories.epochs import steps
from tests.stories.pruning import flooded, script, settings
from tests.stories.world import World

SESSION = SessionID("ses_1")
TOKENS = 4


def user(number: int) -> MessageWithParts:
    info = UserMessage(
        id=MessageID(f"msg_u{number}"),
        session_id=SESSION,
        time=Created(created=1),
        agent="build",
        model=ModelRef(provider_id="p", model_id="m"),
    )
    return MessageWithParts(info, ())


def output(
    number: int, tokens: int, *, name: str = "read", compacted: int | None = None, summary: bool | None = None
) -> MessageWithParts:
    """An answer with one call, whose output has so many tokens."""
    info = AssistantMessage(
        id=MessageID(f"msg_a{number}"),
        session_id=SESSION,
        time=AssistantTime(created=1, completed=2),
        parent_id=MessageID("msg_u0"),
        model_id="m",
        provider_id="p",
        mode="build",
        agent="build",
        path=AssistantPath(cwd="/", root="/"),
        cost=0,
        tokens=usage.ZERO,
        summary=summary,
    )
    part = ToolPart(
        id=PartID(f"prt_{number}"),
        session_id=SESSION,
        message_id=info.id,
        call_id=f"c{number}",
        tool=name,
        state=ToolCompleted(
            input={},
            output="x" * tokens * TOKENS,
            title="",
            metadata={},
            time=Completed(start=1, end=2, compacted=compacted),
        ),
    )
    return MessageWithParts(info, (part,))


def names(parts: list[ToolPart]) -> list[str]:
    return [part.id for part in parts]


RECENT = [output(70, 30_000), user(8), output(80, 90_000), user(9), output(90, 90_000)]
"""The output of the last two prompts is never counted; what was there before them is, from the latest on."""


@pytest.mark.parametrize(
    ("older", "expected"),
    [
        ([], []),
        ([output(1, 9_000)], []),
        ([output(1, 25_000), output(2, 10_000)], ["prt_1"]),
        ([output(1, 19_000), output(2, 10_000)], []),
        ([output(1, 25_000), output(2, 10_000, name="skill"), output(3, 10_000)], ["prt_1"]),
        ([output(1, 25_000, summary=True), output(2, 30_000)], ["prt_2"]),
        ([output(1, 25_000), output(2, 25_000, compacted=5), output(3, 30_000)], ["prt_3"]),
        ([output(1, 25_000), output(2, 25_000, compacted=5), output(3, 3_000)], []),
        ([output(1, 11_000), output(2, 11_000), output(3, 12_000)], ["prt_3", "prt_2", "prt_1"]),
    ],
)
def test_what_may_go(older: list[MessageWithParts], expected: list[str]) -> None:
    """The latest 40,000 tokens stay, and what two prompts brought; less than 20,000 are not worth it; a
    summary, or what was pruned before, ends the search; protected tools are passed over.
    """
    assert names(pruning.candidates([user(0), *older, *RECENT])) == expected


@pytest.mark.parametrize(
    ("turns", "rest", "prices", "expected"),
    [
        (1, 30_000, None, False),
        (40, 30_000, None, True),
        (
            40,
            30_000,
            Prices(base=Price(input=Decimal(1), output=Decimal(1), cache_read=Decimal("0.5"))),
            True,
        ),
        (40, 30_000, Prices(base=Price(input=Decimal(1), output=Decimal(1), cache_read=Decimal(0))), False),
        (2, 400_000, None, False),
    ],
)
def test_when_it_pays(turns: int, rest: int, prices: Prices | None, expected: bool) -> None:
    """Removed tokens, times the turns to expect, times what reading costs, against writing the rest anew."""
    old = output(0, 25_000)
    history = [old, output(1, rest), *[output(number, 0) for number in range(2, 1 + turns)]]
    assert pruning.pays(history, [old.parts[0]], prices) is expected  # type: ignore[list-item]


def results(request: Request) -> list[str]:
    return [
        result.content[0].text
        for message in request.messages
        if isinstance(message, Results)
        for result in message.content
    ]


async def test_old_output_is_a_marker_in_the_request_and_whole_in_the_store(world: World) -> None:
    """The prefix moves once, for the reason that it has; people see the original."""
    settings(world, prune=True)
    async with world.open(*script(8)) as (hf, asked):
        session = await flooded(world, hf, 8)
        page = await hf.sessions.messages(session)
        moved = [each.moved for each in await steps(hf, session)]
    shown = results(asked.requests[-1])
    assert shown.count(PRUNED) > 0
    assert shown[0] == PRUNED
    assert shown[-1].startswith("7 x")
    stored = [part.state for message in page.messages for part in message.parts if isinstance(part, ToolPart)]
    assert all(isinstance(state, ToolCompleted) and len(state.output) > 47_000 for state in stored)
    assert set(moved) == {None, "pruning"}


@pytest.mark.parametrize("how", ["setting", "flag"])
async def test_it_can_be_switched_off(world: World, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """By a setting or by the flag."""
    settings(world, **({"prune": False} if how == "setting" else {"prune": True}))
    if how == "flag":
        monkeypatch.setenv("HOLDFAST_DISABLE_PRUNE", "1")
    async with world.open(*script(8)) as (hf, asked):
        await flooded(world, hf, 8)
    assert PRUNED not in results(asked.requests[-1])
