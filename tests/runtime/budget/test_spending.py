"""What a tree has spent, holds back and may still spend: the pure half of its budget."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.provider.catalog.cost import UNKNOWN, Cost
from holdfast.provider.catalog.model import Model, Price, Prices, WireKind
from holdfast.provider.request import size
from holdfast.provider.request.request import GenerationControls, Request, Text, User
from holdfast.runtime.budget import spending
from holdfast.runtime.budget.spending import Moment, Used
from holdfast.schema.budget import NOTHING, Budget, Reserved, Spent
from holdfast.schema.usage import CacheTokens, Tokens
from holdfast.store.owner import LEASE_MS
from tests.runtime.sample_session import SESSION

NOW = Moment("boot", 100_000)
FREE = Model(provider_id="acme", id="m", api_id="m", name="M", wire=WireKind.OPENAI_CHAT)
PRICED = replace(FREE, prices=Prices(base=Price(input=Decimal(1), output=Decimal(2))))
HELD = Reserved(cost=0.5, tokens=500, sent=100, sent_cost=0.1, session="ses_2", boot="boot", since=90_000)
WANTED = Reserved(cost=0.25, tokens=200)


def spent(**fields: Any) -> Spent:
    return replace(NOTHING, **fields)


def turn(since: int | None, boot: str = "boot", **fields: Any) -> Reserved:
    return replace(HELD, since=since, boot=boot, **fields)


@pytest.mark.parametrize(
    ("reserved", "worked"),
    [
        pytest.param({}, 1_000, id="no turn is under way"),
        pytest.param({"a": turn(90_000)}, 11_000, id="a turn under way counts until now"),
        pytest.param({"a": turn(95_000), "b": turn(90_000)}, 11_000, id="two side by side count once"),
        pytest.param({"a": turn(90_000, "other")}, 1_000, id="one of another boot counts when it ends"),
        pytest.param({"a": turn(None)}, 1_000, id="what is no turn takes no time"),
        pytest.param({"a": turn(200_000)}, 1_000, id="one that begins later than now counts for nothing"),
    ],
)
def test_worked_ms(reserved: dict[str, Reserved], worked: int) -> None:
    """How long the tree has worked by now."""
    assert spending.worked_ms(spent(time_ms=1_000, reserved=reserved), NOW) == worked


@pytest.mark.parametrize(
    ("reserved", "time_ms", "counted"),
    [
        pytest.param({"a": turn(90_000)}, 10_000, 10_000, id="alone it counts whole"),
        pytest.param(
            {"a": turn(90_000), "b": turn(93_000)}, 10_000, 3_000, id="beside a younger one, until it"
        ),
        pytest.param({"a": turn(93_000), "b": turn(90_000)}, 7_000, 0, id="beside an older one, not at all"),
        pytest.param(
            {"a": turn(90_000), "b": turn(93_000, "other")}, 10_000, 10_000, id="another boot counts its own"
        ),
        pytest.param(
            {"a": turn(90_000), "b": turn(None)}, 10_000, 10_000, id="what is no turn counts nothing"
        ),
        pytest.param({"a": turn(90_000), "b": turn(99_000)}, 4_000, 4_000, id="never more than it took"),
        pytest.param(
            {"a": turn(None), "b": turn(93_000)}, 10, 10, id="a call beside a turn counts what it took"
        ),
        pytest.param(
            {"a": turn(90_000), "b": turn(96_000), "c": turn(93_000)},
            10_000,
            3_000,
            id="until the first of two",
        ),
        pytest.param({"a": turn(90_000)}, -5, 0, id="a clock that went back takes nothing away"),
        pytest.param({"b": turn(93_000)}, 10_000, 10_000, id="a turn that held nothing back"),
    ],
)
def test_a_turn_that_ends_counts_its_time_once(
    reserved: dict[str, Reserved], time_ms: int, counted: int
) -> None:
    """Turns side by side share their time: it is counted by the last of them that ends."""
    used = Used(turn="a", tokens=tokens(), cost=Cost(amount=Decimal(0), known=True), time_ms=time_ms)
    left = {name: each for name, each in reserved.items() if name != "a"}
    before = replace(SESSION, spent=spent(time_ms=1_000, reserved=reserved))

    assert spending.settled(before, used).spent == spent(time_ms=1_000 + counted, reserved=left)


def tokens(**fields: Any) -> Tokens:
    return replace(Tokens(input=0, output=0, reasoning=0, cache=CacheTokens(read=0, write=0)), **fields)


def test_what_a_turn_used_takes_the_place_of_what_it_held_back() -> None:
    """All kinds of tokens count; money is added in decimals."""
    took = tokens(input=1, output=20, reasoning=300, cache=CacheTokens(read=4_000, write=50_000))
    used = Used(turn="a", tokens=took, cost=Cost(amount=Decimal("0.2"), known=True), time_ms=7)
    before = replace(SESSION, spent=spent(cost=0.1, tokens=5, reserved={"a": HELD}))

    assert spending.settled(before, used).spent == spent(cost=0.3, tokens=54_326, time_ms=7)
    assert spending.settled(SESSION, used).spent == spent(cost=0.2, tokens=54_321, time_ms=7)


@pytest.mark.parametrize(
    ("before", "cost", "after"),
    [
        (None, Cost(amount=Decimal(1), known=True), None),
        (None, UNKNOWN, True),
        (True, Cost(amount=Decimal(1), known=True), True),
    ],
)
def test_a_price_that_was_not_known_is_remembered(
    before: bool | None, cost: Cost, after: bool | None
) -> None:
    """A budget in money cannot be kept from then on."""
    used = Used(turn="a", tokens=tokens(), cost=cost, time_ms=0)
    root = spending.settled(replace(SESSION, spent=spent(unknown=before)), used)

    assert root.spent is not None
    assert root.spent.unknown is after


@pytest.mark.parametrize(
    ("held", "said", "tokens", "cost"),
    [
        pytest.param(HELD, 0, 100, 0.1, id="nothing came: the request is spent"),
        pytest.param(HELD, 200, 300, 0.3, id="half of the answer came: half of its cost"),
        pytest.param(HELD, 9_999, 500, 0.5, id="never more than was held back"),
        pytest.param(replace(HELD, sent=None), 200, 0, 0.0, id="what was never sent is free"),
        pytest.param(replace(HELD, sent_cost=None), 0, 100, 0.0, id="a request without a cost"),
        pytest.param(replace(HELD, tokens=100), 200, 100, 0.1, id="no answer was held back for"),
    ],
)
def test_a_turn_that_came_to_no_end(held: Reserved, said: int, tokens: int, cost: float) -> None:
    """What was sent is gone, and what was said of the answer."""
    before = spent(cost=1.0, tokens=1_000, time_ms=1, reserved={"a": held})
    after = spending.after_failure(before, "a", answer_tokens=said, time_ms=2)

    assert after == spent(cost=1.0 + cost, tokens=1_000 + tokens, time_ms=3)


def test_a_lost_turn_of_an_unknown_price_is_remembered() -> None:
    """As one that ended is; a turn that holds nothing back any more changes nothing but the time."""
    before = spent(reserved={"a": replace(HELD, unknown=True)})

    assert spending.after_failure(before, "a", answer_tokens=0, time_ms=0).unknown is True
    known = spent(unknown=True, reserved={"a": HELD})
    assert spending.after_failure(known, "a", answer_tokens=0, time_ms=0).unknown is True
    assert spending.after_failure(NOTHING, "a", answer_tokens=9, time_ms=3) == spent(time_ms=3)


@pytest.mark.parametrize(
    ("held", "worked_ms", "counted"),
    [
        pytest.param(turn(90_000), 0, 10_000, id="of this boot: until now"),
        pytest.param(turn(10_000), 0, LEASE_MS, id="at most a lease, where nothing is known of it"),
        pytest.param(turn(10_000), 5_000, 5_000 + LEASE_MS, id="at most a lease after what is known"),
        pytest.param(turn(90_000, "other"), 5_000, 5_000, id="of another boot: what is known"),
        pytest.param(turn(None), 5_000, 0, id="what is no turn takes no time"),
    ],
)
def test_the_time_of_a_dead_runner(held: Reserved, worked_ms: int, counted: int) -> None:
    """A runner that is down for a night does not use up the budget; one that is killed often does."""
    before = spent(reserved={"a": replace(held, sent=None)})

    assert spending.after_death(before, "a", NOW, answer_tokens=0, worked_ms=worked_ms) == spent(
        time_ms=counted
    )


def test_a_dead_turn_is_counted_once() -> None:
    """Whoever ended its reservation has counted it; what it had said counts with it."""
    before = spent(reserved={"a": HELD})
    after = spending.after_death(before, "a", NOW, answer_tokens=200, worked_ms=0)

    assert after == spent(tokens=300, cost=0.3, time_ms=10_000)
    assert spending.after_death(after, "a", NOW, answer_tokens=200, worked_ms=0) == after


@pytest.mark.parametrize(
    ("each", "stays"),
    [
        pytest.param(replace(HELD, until=None), True, id="a turn ends with its turn"),
        pytest.param(replace(HELD, since=None, until=100_001), True, id="it has time left"),
        pytest.param(replace(HELD, since=None, until=100_000), False, id="its time is over"),
        pytest.param(replace(HELD, since=None, until=100_001, boot="other"), False, id="one of another boot"),
    ],
)
def test_what_ends_by_itself(each: Reserved, stays: bool) -> None:
    """A call that no recovery knows of holds back for a while only, and is not spent when it ends."""
    reserved = {"a": each, "b": HELD}
    kept = reserved if stays else {"b": HELD}

    assert spending.still_reserved(spent(reserved=reserved), NOW, ()) == spent(reserved=kept)


def test_turns_whose_runners_are_gone_are_spent() -> None:
    """What they had sent, before anything else is judged."""
    reserved = {"a": HELD, "b": turn(95_000)}

    assert spending.still_reserved(spent(reserved=reserved), NOW, ["a"]) == spent(
        tokens=100, cost=0.1, time_ms=5_000, reserved={"b": turn(95_000)}
    )


@pytest.mark.parametrize(
    ("budget", "before", "model", "words"),
    [
        pytest.param(Budget(), spent(tokens=10**9), FREE, None, id="no limit"),
        pytest.param(Budget(tokens=1_200), spent(tokens=1_000), PRICED, None, id="tokens that just suffice"),
        pytest.param(
            Budget(tokens=1_199),
            spent(tokens=1_000),
            PRICED,
            "the budget of 1199 tokens does not reach for the next request: 1000 are used, "
            "0 held back for turns under way, and it may take 200",
            id="one token too few",
        ),
        pytest.param(
            Budget(tokens=1_699),
            spent(tokens=1_000, reserved={"a": HELD}),
            PRICED,
            "the budget of 1699 tokens does not reach for the next request: 1000 are used, "
            "500 held back for turns under way, and it may take 200",
            id="what is held back counts",
        ),
        pytest.param(
            Budget(tokens=1_700), spent(tokens=1_000, reserved={"a": HELD}), PRICED, None, id="enough"
        ),
        pytest.param(Budget(cost=1.0), spent(cost=0.75), PRICED, None, id="money that just suffices"),
        pytest.param(
            Budget(cost=1.0),
            spent(cost=0.76),
            PRICED,
            "the budget of $1 does not reach for the next request: $0.76 is used, "
            "$0 held back for turns under way, and it may cost $0.25",
            id="one cent too few",
        ),
        pytest.param(
            Budget(cost=1.0),
            spent(cost=0.3, reserved={"a": HELD}),
            PRICED,
            "the budget of $1 does not reach for the next request: $0.3 is used, "
            "$0.5 held back for turns under way, and it may cost $0.25",
            id="money that is held back counts",
        ),
        pytest.param(
            Budget(cost=1.0),
            NOTHING,
            FREE,
            "there is a budget in money, and the price of acme/m is not known",
            id="a model without a price",
        ),
        pytest.param(Budget(cost=1.0, unknown_price="allow"), NOTHING, FREE, None, id="which may be allowed"),
        pytest.param(
            Budget(cost=1.0),
            spent(unknown=True),
            PRICED,
            "there is a budget in money, and some of what was spent before had no known price",
            id="earlier spending without a price",
        ),
        pytest.param(
            Budget(cost=1.0, unknown_price="allow"), spent(unknown=True), PRICED, None, id="allowed as well"
        ),
        pytest.param(Budget(tokens=10**6), spent(unknown=True), FREE, None, id="no limit in money"),
        pytest.param(Budget(time_ms=60_000), spent(time_ms=59_999), FREE, None, id="time that is left"),
        pytest.param(
            Budget(time_ms=60_000),
            spent(time_ms=60_000),
            FREE,
            "the budget of 60 s of work is used up (60 s)",
            id="no time is left",
        ),
        pytest.param(
            Budget(time_ms=60_000, tokens=0),
            spent(time_ms=55_000, reserved={"a": HELD}),
            FREE,
            "the budget of 60 s of work is used up (65 s)",
            id="turns under way use time, which is judged first",
        ),
    ],
)
def test_refused(budget: Budget, before: Spent, model: Model, words: str | None) -> None:
    """Why a turn may not begin, with every number that a user needs; None when it may."""
    assert spending.refused(budget, before, WANTED, model, NOW) == words


@pytest.mark.parametrize("output", [1_000, None])
def test_what_a_request_may_take(output: int | None) -> None:
    """Its estimated length, and the longest answer allowed; money where a price is known."""
    words = User(content=(Text(text="x" * 400),))
    request = Request(model=PRICED, messages=(words,), controls=GenerationControls(max_output_tokens=output))
    sent, answer = size.estimate_request(request), output or 0
    most = Reserved(
        cost=float(Decimal(sent + 2 * answer) / 1_000_000),
        tokens=sent + answer,
        sent=sent,
        sent_cost=float(Decimal(sent) / 1_000_000),
    )

    assert spending.most(request) == most
    assert spending.most(replace(request, model=FREE)) == replace(most, cost=0, sent_cost=0, unknown=True)
