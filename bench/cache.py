"""How well the provider's prompt cache serves a long session: prints JSON with the hit ratio over the ideal.

    scripts/bench cache [--requests] [--model anthropic/NAME]

The long story of `tests/golden` is played, every request is encoded by the real Anthropic adapter, and the
bodies go to a simulated cache (`prompt_cache.py`) at the story's own times: turns 20 s apart, and one pause
that no entry outlives. The ideal of a request is all that the one before it sent. Requests that cannot extend
the one before them (the first of an epoch, another model or agent, other tools, the pause) are forced: they
cost, and they are no part of the ratio. For comparison the same story with marks on the last two messages
only, and in a naive layout (`naive.py`).
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # The story lives with the tests, and this file is run as a program.
    sys.path.insert(0, str(ROOT))

from bench import naive, prompt_cache  # noqa: E402
from bench.prompt_cache import Entries, Outcome, Rules  # noqa: E402
from holdfast.provider.request.request import Request  # noqa: E402
from holdfast.provider.wire.anthropic.adapter import AnthropicAdapter  # noqa: E402
from holdfast.provider.wire.wire import Endpoint  # noqa: E402

if TYPE_CHECKING:
    from tests.golden.stage import Seen, Stage

RULES = Rules()
_ENDPOINT = Endpoint(base_url="https://api.invalid/v1", key="none")

Layout = Callable[["Seen"], Request]


class Fared(msgspec.Struct, frozen=True):
    """How one request fared. `ideal` is what it could have read; `forced` says why it could not."""

    number: int
    note: str
    outcome: Outcome
    ideal: int
    forced: str | None


def ours(seen: "Seen") -> Request:
    """As it was sent."""
    return seen.request


def last_two_marked(seen: "Seen") -> Request:
    """Our blocks, with the marks that are usual."""
    return naive.last_two_marked(seen.request)


def naive_layout(seen: "Seen") -> Request:
    """What another tool would have sent."""
    if seen.aside:
        return last_two_marked(seen)
    return naive.layout(seen.request, date=seen.date, rules=seen.rules, tools=seen.tools)


def fared(seen: Sequence["Seen"], layout: Layout = ours, rules: Rules = RULES) -> list[Fared]:
    """The whole story through one cache."""
    entries: Entries = {}
    made: list[Fared] = []
    for each in seen:
        entries, outcome = prompt_cache.send(entries, encoded(layout(each)), each.at_ms, rules)
        before = made[each.before - 1].outcome.tokens if each.before else 0
        ideal = before if before >= rules.least else 0
        made.append(Fared(each.number, each.note, outcome, ideal, forced(each, seen, rules)))
    return made


def encoded(request: Request) -> dict[str, Any]:
    """The body as it goes over the wire."""
    body: dict[str, Any] = json.loads(AnthropicAdapter().encode(request, _ENDPOINT).body)
    return body


def forced(seen: "Seen", story: Sequence["Seen"], rules: Rules = RULES) -> str | None:
    """Why a request cannot find the one before it, whatever we do; None when it should."""
    if seen.aside:
        return "beside the conversation"
    if seen.before is None or seen.begins is not None:
        return "first of an epoch"
    before = story[seen.before - 1]
    if seen.moved is not None:
        return seen.moved
    if seen.request.model.api_id != before.request.model.api_id:
        return "model"
    return "pause" if seen.at_ms - before.at_ms >= rules.life_ms else None


def figures(made: Sequence[Fared]) -> dict[str, Any]:
    """The ratios over what was not forced, and what everything cost."""
    free = [each for each in made if each.forced is None]
    sent = sum(each.outcome.tokens for each in free)
    hit = sum(each.outcome.read for each in free) / sent
    ideal = sum(each.ideal for each in free) / sent
    missed = {
        f"{each.number}: {each.note}": each.ideal - each.outcome.read
        for each in free
        if each.outcome.read < each.ideal
    }
    return {
        "hit ratio": round(hit, 4),
        "ideal": round(ideal, 4),
        "quotient": round(hit / ideal, 4),
        "cost": round(sum(each.outcome.cost for each in made)),
        "cost of unforced requests": round(sum(each.outcome.cost for each in free)),
        "missed": missed,
    }


async def bench(place: Path, model: str | None, *, requests: bool) -> dict[str, Any]:
    """Every row."""
    from tests.golden.stage import SONNET, Stage
    from tests.golden.story import play

    return told(await play(place, Stage(place, model or SONNET)), requests=requests)


def told(stage: "Stage", *, requests: bool = False) -> dict[str, Any]:
    """The figures of a story that was played."""
    made = fared(stage.seen)
    rows = {
        "holdfast": figures(made),
        "our blocks, last two messages marked": figures(fared(stage.seen, last_two_marked)),
        "naive layout": figures(fared(stage.seen, naive_layout)),
    }
    for row in rows.values():
        row["cost, ratio to holdfast"] = round(row["cost"] / rows["holdfast"]["cost"], 2)
    story = {
        "turns": stage.seen[-1].turn,
        "requests": len(stage.seen),
        "tokens": sum(each.outcome.tokens for each in made),
        "forced": dict(Counter(each.forced for each in made if each.forced is not None)),
    }
    each = {"each request": [msgspec.to_builtins(one) for one in made]} if requests else {}
    return {"story": story, **rows, **each}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", action="store_true", help="print how each request fared, too")
    parser.add_argument("--model", help="another model of the wire, as anthropic/NAME")
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=".")).resolve()
    for name in [name for name in os.environ if name.startswith(("HOLDFAST_", "OPENCODE_", "XDG_"))]:
        del os.environ[name]  # The person's own settings are no part of the story.
    os.environ["HOME"] = str(place / "home")
    try:
        rows = asyncio.run(bench(place, arguments.model, requests=arguments.requests))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(json.dumps({"python": sys.version.split()[0], **rows}, indent=2))


if __name__ == "__main__":
    main()
