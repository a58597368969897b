"""The simulated prompt cache keeps the rules that its head names."""

from typing import Any

import pytest

from bench import prompt_cache
from bench.prompt_cache import Entries, Outcome, Rules, TooManyMarks, send

MARK = {"cache_control": {"type": "ephemeral"}}
SMALL = Rules(least=0)


def text(words: str, *, marked: bool = False) -> dict[str, Any]:
    """A text block of 100 tokens."""
    block: dict[str, Any] = {"type": "text", "text": words}
    room = 400 - len('{"text":"","type":"text"}')
    return {**block, "text": words.ljust(room, "."), **(MARK if marked else {})}


def body(*said: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One message of the person's, after a system text that is not marked unless said otherwise."""
    return {
        "model": "m",
        "system": [text("s")],
        "messages": [{"role": "user", "content": list(said)}],
        **more,
    }


def told(
    *requests: dict[str, Any], at_ms: tuple[int, ...] = (), rules: Rules = SMALL
) -> list[tuple[int, ...]]:
    """Requests one after the other, at these moments or at once: read, written and plain of each."""
    entries: Entries = {}
    found: list[tuple[int, ...]] = []
    for number, request in enumerate(requests):
        entries, outcome = send(entries, request, at_ms[number] if at_ms else 0, rules)
        found.append((outcome.read, outcome.written, outcome.plain))
    return found


def test_more_than_four_marks_are_refused() -> None:
    """As the provider does."""
    with pytest.raises(TooManyMarks, match="5 blocks are marked, and 4 may be"):
        send({}, body(*(text(str(n), marked=True) for n in range(5))), 0)


def test_nothing_is_kept_without_a_mark() -> None:
    """And what stands behind the last mark is plain input."""
    assert told(body(text("a")), body(text("a"))) == [(0, 0, 200)] * 2
    assert told(body(text("a", marked=True), text("b"))) == [(0, 200, 100)]


def test_a_prefix_that_was_written_is_read() -> None:
    """The rest of the next request is written where it is marked; a mark itself changes nothing."""
    first = body(text("a", marked=True))
    second = body(text("a"), text("b", marked=True))

    assert told(first, second, second) == [(0, 200, 0), (200, 100, 0), (300, 0, 0)]


@pytest.mark.parametrize(
    "other",
    [
        {"model": "n"},
        {"system": [text("t")]},
        {"system": []},
        {"tools": [{"name": "read"}]},
        {"tool_choice": {"type": "none"}},
        {"thinking": {"type": "enabled", "budget_tokens": 1_024}},
        {"messages": [{"role": "assistant", "content": [text("a", marked=True)]}]},
        {"messages": [{"role": "user", "content": [text("A", marked=True)]}]},
    ],
    ids=lambda each: next(iter(each)),
)
def test_whatever_stands_before_must_be_the_same(other: dict[str, Any]) -> None:
    """One difference, and nothing behind it is found."""
    (_, second) = told(body(text("a", marked=True)), {**body(text("a", marked=True)), **other})

    assert second[0] == 0


def test_a_choice_of_tools_leaves_tools_and_system_texts_in_the_cache() -> None:
    """Only the messages are cached under it."""
    system = [text("s", marked=True)]
    first = body(text("a", marked=True), system=system)
    forced = body(text("a", marked=True), system=system, tool_choice={"type": "any"})

    assert told(first, forced, first) == [(0, 200, 0), (100, 100, 0), (200, 0, 0)]


def test_an_entry_is_looked_for_at_twenty_places() -> None:
    """The mark's own place is one of them."""
    first = body(text("a", marked=True))

    def grown(count: int) -> dict[str, Any]:
        return body(text("a"), *(text(str(n)) for n in range(count - 1)), text("z", marked=True))

    assert told(first, grown(19))[1] == (200, 1_900, 0)
    assert told(first, grown(20))[1] == (0, 2_200, 0)


def test_each_mark_looks_back_for_itself_and_the_longest_find_counts() -> None:
    """So a mark where the request before ended finds it, however much was added."""
    more = [text(str(n)) for n in range(30)]
    first = body(text("a", marked=True))
    second = body(text("a", marked=True), *more, text("z", marked=True))

    assert told(first, second) == [(0, 200, 0), (200, 3_100, 0)]


def test_an_entry_lives_five_minutes_and_longer_when_it_is_used() -> None:
    """To the millisecond."""
    request = body(text("a", marked=True))

    assert told(request, request, at_ms=(0, 299_999))[1] == (200, 0, 0)
    assert told(request, request, at_ms=(0, 300_000))[1] == (0, 200, 0)
    assert told(request, request, request, at_ms=(0, 299_999, 599_998))[2] == (200, 0, 0)


def test_an_entry_that_was_found_by_looking_back_lives_longer_too() -> None:
    """It was used, though it is not marked any more."""
    first, second = body(text("a", marked=True)), body(text("a"), text("b", marked=True))

    assert told(first, second, first, at_ms=(0, 200_000, 400_000))[2] == (200, 0, 0)


def test_a_prefix_below_the_least_size_is_not_kept() -> None:
    """A mark that stands too early does no harm to a later one."""
    short = body(text("a", marked=True))
    long = body(text("a", marked=True), text("b", marked=True))
    rules = Rules(least=300)

    assert told(short, short, rules=rules) == [(0, 0, 200)] * 2
    assert told(short, long, long, rules=rules)[1:] == [(0, 300, 0), (300, 0, 0)]


def test_what_is_not_used_for_five_minutes_is_forgotten() -> None:
    """Nothing grows for ever."""
    entries, _ = send({}, body(text("a", marked=True)), 0, SMALL)
    entries, _ = send(entries, body(text("b", marked=True)), 300_000, SMALL)

    assert len(entries) == 1


def test_the_price_of_a_request() -> None:
    """A tenth for what is read, a quarter more for what is written."""
    outcome = Outcome(read=1_000, written=100, plain=10)

    assert (outcome.tokens, outcome.cost) == (1_110, 235.0)


def test_the_blocks_come_in_the_order_of_the_cache() -> None:
    """Tools, system texts, then each block of each message, whatever the order of the body."""
    sent = {
        "messages": [{"role": "user", "content": [text("a"), text("b")]}],
        "system": [text("s", marked=True)],
        "tools": [{"name": "t"}],
        "model": "m",
    }

    assert [(block.tokens, block.marked) for block in prompt_cache.blocks(sent)] == [
        (3, False),
        (100, True),
        (100, False),
        (100, False),
    ]
