"""The provider's prompt cache finds in each request of the long story what the request before it sent."""

from itertools import pairwise

import pytest

from bench import cache, prompt_cache
from bench.prompt_cache import Rules
from tests.golden.stage import Stage

LEAST = [512, 1_024, 2_048, 4_096]
"""The sizes below which models do not cache."""


@pytest.mark.ci
@pytest.mark.parametrize("least", LEAST)
def test_what_was_sent_is_found(told: Stage, least: int) -> None:
    """Over restart, date, instructions, forks, a last step and turns of more blocks than a look back sees."""
    made = cache.fared(told.seen, rules=Rules(least=least))
    figures = cache.figures(made)

    assert [each for each in made if each.forced is None and each.outcome.read < each.ideal] == []
    assert figures["quotient"] == 1.0
    assert 0.8 < figures["ideal"] < 1, "most of it could be found, or this would prove nothing"


@pytest.mark.ci
def test_the_wire_extends_where_the_blocks_do(told: Stage) -> None:
    """What the adapter makes of a request begins with what it made of the one before, block by block, though
    the marks have moved on. The last block of that one is marked in both, and found without looking back;
    only where the provider refused, and nothing was answered, the next request cannot know of it.
    """
    for each in told.seen:
        if cache.forced(each, told.seen) not in (None, "pause"):
            continue
        assert each.before is not None
        before = prompt_cache.blocks(cache.encoded(told.seen[each.before - 1].request))
        after = prompt_cache.blocks(cache.encoded(each.request))
        assert [block.name for block in before] == [block.name for block in after[: len(before)]], each.number
        assert before[-1].marked, each.number
        assert after[len(before) - 1].marked or each.note == "and is asked again", each.number


def test_one_turn_adds_more_blocks_than_anybody_looks_back(told: Stage) -> None:
    """Or the story would not show that the marks do not depend on it."""
    counts = [len(prompt_cache.blocks(cache.encoded(each.request))) for each in told.seen]

    assert max(after - before for before, after in pairwise(counts[:10])) > 2 * Rules().places


@pytest.mark.ci
def test_other_layouts_are_dearer(told: Stage) -> None:
    """The marks alone, and the layout, each save something: the comparison can fail."""
    rows = cache.told(told)
    costs = [
        rows[name]["cost"] for name in ("holdfast", "our blocks, last two messages marked", "naive layout")
    ]
    quotients = [
        rows[name]["quotient"]
        for name in ("holdfast", "our blocks, last two messages marked", "naive layout")
    ]

    assert costs == sorted(costs)
    assert quotients == sorted(quotients, reverse=True)
    assert len(set(costs)) == len(set(quotients)) == 3


@pytest.mark.ci("the story of this module is told for it")
def test_the_naive_layout_tells_the_world_as_it_is(told: Stage) -> None:
    """One system text with today's date and today's rules, no update, tools as they were registered."""
    asked = [each for each in told.seen if each.note == "AGENTS.md was edited"][-1]
    body = cache.encoded(cache.naive_layout(asked))

    (system,) = body["system"]
    assert "Today's date is 2027-03-01." in system["text"]
    assert "Settle the second part first." in system["text"]
    assert "cache_control" not in system
    assert "supersedes" not in str(body["messages"])
    assert [tool["name"] for tool in body["tools"]] == list(asked.tools)
