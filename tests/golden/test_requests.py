"""Golden requests: what the model saw in the long story is what is kept beside this file, word for word.

A change of an instruction text, of a tool or of the layout shows here as a change of the kept texts. Look at
it, and when it is meant:

    GOLDEN=write scripts/test tests/golden
"""

import difflib
import os
import re
from pathlib import Path

from holdfast.provider.request import prefix
from holdfast.runtime.epoch import prefix_change
from tests import prefixes
from tests.golden.stage import Seen, Stage
from tests.golden.story import turns
from tests.golden.text import texts

KEPT = Path(__file__).parent / "requests"
LINES_MAX = 60


def test_what_the_model_saw_is_what_is_kept(told: Stage) -> None:
    """Every request of the story, as text; no file is left over."""
    made = texts(told.seen, told.plain)
    if os.environ.get("GOLDEN") == "write":
        _write(made)
    kept = {path.name: path.read_text(encoding="utf-8") for path in sorted(KEPT.glob("*.txt"))}

    assert _difference(kept, made) == ""


def _write(made: dict[str, str]) -> None:
    KEPT.mkdir(exist_ok=True)
    for path in KEPT.glob("*.txt"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (KEPT / name).write_text(text, encoding="utf-8")


def _difference(kept: dict[str, str], made: dict[str, str]) -> str:
    """The beginning of what is different, and what to do about it."""
    lines = [
        line
        for name in sorted(kept.keys() | made.keys())
        for line in difflib.unified_diff(
            kept.get(name, "").splitlines(),
            made.get(name, "").splitlines(),
            f"kept {name}",
            f"made {name}",
            lineterm="",
        )
    ]
    if not lines:
        return ""
    return "\n".join([*lines[:LINES_MAX], f"({len(lines)} lines differ; GOLDEN=write keeps what was made)"])


def test_every_block_is_written_or_said_to_be_that_of_an_earlier_request(told: Stage) -> None:
    """The texts are short, and nothing is left out: the numbers of the blocks have no gap."""
    for each, text in zip(told.seen, texts(told.seen, told.plain).values(), strict=True):
        named = [re.match(r"\[(\d+)\](?: to \[(\d+)\])? ", line) for line in text.splitlines()]
        spans = [(int(found[1]), int(found[2] or found[1])) for found in named if found]
        assert [number for first, last in spans for number in range(first, last + 1)] == list(
            range(1, len(prefixes.blocks(each.request)) + 1)
        ), each.number


def test_nothing_of_this_machine_is_kept(told: Stage) -> None:
    """A path of it would make every other machine differ."""
    assert [name for name, text in texts(told.seen, told.plain).items() if str(told.place) in text] == []


def test_each_request_extends_the_one_before_it_or_says_why(told: Stage) -> None:
    """Law 7, between all neighbours: what was sent and what the step has stored agree with the story."""
    asked = [each for each in told.seen if not each.aside]

    assert [_found(told, each) for each in asked] == [_expected(each) for each in asked]


def _found(told: Stage, seen: Seen) -> tuple[int, str]:
    """What became of the prefix, by the bytes that were sent and by the reason that was stored."""
    stored = seen.prefix
    if seen.before is None:
        return seen.number, "begins"
    before = told.seen[seen.before - 1]
    differs = prefixes.first_difference(prefixes.blocks(before.request), prefixes.blocks(seen.request))
    if stored is not None and stored.moved is not None:
        return seen.number, stored.moved if differs == stored.block else f"{stored.moved}, at another block"
    if stored is not None and before.prefix is not None and stored.epoch != before.prefix.epoch:
        return seen.number, "begins"
    return seen.number, "extends" if differs is None else prefix_change.FAULT


def _expected(seen: Seen) -> tuple[int, str]:
    begins = seen.before is None or seen.begins is not None
    return seen.number, seen.moved or ("begins" if begins else "extends")


def test_the_stored_names_are_those_of_the_blocks_that_were_sent(told: Stage) -> None:
    """So the whole request before can be named from the history alone."""
    for each in told.seen:
        if each.prefix is not None:
            names = prefix.named(each.request).names
            assert names[each.prefix.kept :] == each.prefix.blocks, each.number


def test_the_story_tells_everything(told: Stage) -> None:
    """Whoever shortens it must find another place for what he takes out."""
    stored = [each.prefix for each in told.seen if each.prefix is not None]

    assert len(turns(told)) >= 40
    assert {each.moved for each in stored} == {None, "agent", "model", "tools", "output format"}
    assert {each.session for each in told.seen} == {"main", "fork", "early fork"}
    assert len({each.epoch for each in stored}) == 3
    assert len({each.date for each in told.seen}) == 3
    assert [each.note for each in told.seen if each.aside] == [
        "compaction by hand",
        "too full: it compacts by itself",
    ]
