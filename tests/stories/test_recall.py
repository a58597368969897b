"""What was compacted stays in the transcript, and the model can find it again."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.store.query import SearchQuery
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolOutput
from holdfast.tools.builtin.recall import around
from tests.stories.world import World
from tests.until import until


async def test_what_was_compacted_is_found_with_the_id_of_its_message(world: World) -> None:
    """Messages by the index, output of tools by looking through it; what is nowhere is said to be."""
    (world.project / "notes.txt").write_text("the password of the zebra is stripes")
    async with world.open(
        Step(Say("Noted: the heron lives at pond seven.")),
        Step(Call("read", {"filePath": "notes.txt"}, id="r")),
        Step(Say("Read it.")),
        Step(Say("a summary that tells nothing")),
        Step(
            Call("recall", {"query": "heron pond"}, id="a"),
            Call("recall", {"query": "zebra STRIPES"}, id="b"),
            Call("recall", {"query": "unicorn"}, id="c"),
            Call("recall", {"query": "  "}, id="d"),
        ),
        Step(Say("found"), expect=answered("b", "(output of read)")),
    ) as (hf, script):
        world.settings(compaction={"tail_turns": 0})
        session = await world.session(hf)
        await hf.sessions.process(session, "remember the heron")
        await hf.sessions.process(session, "read the notes")
        messages = (await hf.sessions.messages(session)).messages
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        await until(lambda: hf.store.search(SearchQuery("heron")))
        await hf.sessions.process(session, "where was it?")
        after = (await hf.sessions.messages(session)).messages
    results = {
        part.call_id: getattr(part.state, "output", None) or part.state.error
        for message in after
        for part in message.parts
        if getattr(part, "tool", "") == "recall"
    }
    assert messages[1].info.id in results["a"]
    assert "pond seven" in results["a"]
    assert messages[3].info.id in results["b"]
    assert "the password of the zebra is stripes" in results["b"]
    assert results["c"] == "Nothing in this session holds all of: unicorn"
    assert results["d"] == "The query is empty. Give the words to look for."
    assert "heron lives" not in str(script.requests[4].messages)


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("One two three", ["TWO", "one"], "One two three"),
        ("One two three", ["two", "four"], None),
        ("a" * 500 + " needle " + "b" * 500, ["needle"], "… " + "a" * 99 + " needle " + "b" * 193 + " …"),
    ],
)
def test_an_excerpt_has_all_the_words_around_the_first(
    text: str, words: list[str], found: str | None
) -> None:
    """Whatever their case; it is short, and says where it was cut."""
    assert around(text, words) == found


def much(lines: int, needles: dict[int, str]) -> Tool:
    """A tool whose output is too long for its record; some of its lines say something else."""

    @tool(name="much")
    async def much(context: ToolContext, what: str) -> str:
        """Say much."""
        return "\n".join(needles.get(number, f"line {number} of {what}") for number in range(lines))

    return much


def recalled(messages: Sequence[MessageWithParts]) -> list[str]:
    """What the tool has answered."""
    return [
        part.state.output
        for message in messages
        for part in message.parts
        if isinstance(part, ToolPart) and part.tool == "recall" and isinstance(part.state, ToolCompleted)
    ]


async def test_what_was_too_long_for_its_record_is_found_in_the_file_that_holds_it(world: World) -> None:
    """The record shows beginning and end only; the answer names the message and the file."""
    world.settings(permission={"*": "allow"})
    needles = {3_000: "the HERON lives at pond seven", 90_000: "and the zebra too"}
    queries = ["heron pond", "heron zebra", "heron unicorn"]
    async with world.open(
        Step(Call("much", {"what": "birds"}, id="m")),
        Step(*[Call("recall", {"query": query}, id=query) for query in queries]),
        Step(Say("found")),
    ) as (hf, _):
        hf.tools.register(much(100_000, needles))
        session = await world.session(hf)
        await hf.sessions.process(session, "look")
        messages = (await hf.sessions.messages(session)).messages
    put = next(part for part in messages[1].parts if isinstance(part, ToolPart))
    assert isinstance(put.state, ToolCompleted)
    assert "HERON" not in put.state.output
    (path,) = put.state.metadata["outputPaths"]
    one, both, none = recalled(messages)
    for answer in (one, both):
        assert answer.startswith(f"{messages[1].info.id} (output of much, kept in {path}): ")
        assert "the HERON lives at pond seven" in answer
    assert none == "Nothing in this session holds all of: heron unicorn"


async def test_only_files_of_managed_output_are_looked_into(world: World, tmp_path: Path) -> None:
    """What a record names besides, or in a link, is not read; one that has expired is no find."""
    world.settings(permission={"*": "allow"})
    secret = tmp_path / "secret"
    secret.write_text("the heron lives at pond seven")

    @tool(name="sly")
    async def sly(context: ToolContext, what: str) -> ToolOutput:
        """Name a file."""
        return ToolOutput(text="nothing here", paths=(str(secret),))

    async with world.open(
        Step(Call("much", {"what": "birds"}, id="m"), Call("sly", {"what": "x"}, id="s")),
        Step(Call("recall", {"query": "heron"}, id="a")),
        Step(Say("end")),
        Step(Call("recall", {"query": "heron"}, id="b")),
        Step(Say("end")),
    ) as (hf, _):
        hf.tools.register(much(10_000, {3_000: "the heron lives at pond seven"}))
        hf.tools.register(sly)
        session = await world.session(hf)
        await hf.sessions.process(session, "look")
        (kept,) = (world.home / ".local" / "share" / "holdfast" / "tool-output").iterdir()
        kept.unlink()
        kept.symlink_to(secret)
        await hf.sessions.process(session, "once more")
        messages = (await hf.sessions.messages(session)).messages
    before, after = recalled(messages)
    assert f"kept in {kept}" in before
    assert str(secret) not in before
    assert after == "Nothing in this session holds all of: heron"


@pytest.mark.parametrize("truncated", [False, True])
async def test_a_file_that_a_tool_named_by_itself_is_not_looked_into(world: World, truncated: bool) -> None:
    """A kept file of another session, in the record of a call that did not write it: it stays that session's,
    also where the tool says that its output was cut.
    """
    world.settings(permission={"*": "allow"})
    others: list[str] = []

    @tool(name="sly")
    async def sly(context: ToolContext, what: str) -> ToolOutput:
        """Name a file."""
        metadata = {"outputPaths": others, "truncated": truncated}
        return ToolOutput(text="nothing here", metadata=metadata, paths=tuple(others) if truncated else ())

    async with world.open(
        Step(Call("much", {"what": "birds"}, id="m")),
        Step(Say("end")),
        Step(Call("sly", {"what": "x"}, id="s")),
        Step(Call("recall", {"query": "heron"}, id="a")),
        Step(Say("end")),
    ) as (hf, _):
        hf.tools.register(much(10_000, {3_000: "the heron lives at pond seven"}))
        hf.tools.register(sly)
        await hf.sessions.process(await world.session(hf), "look")
        others += map(str, (world.home / ".local" / "share" / "holdfast" / "tool-output").iterdir())
        session = await world.session(hf)
        await hf.sessions.process(session, "find")
        messages = (await hf.sessions.messages(session)).messages
    put = next(part for part in messages[1].parts if isinstance(part, ToolPart))
    assert isinstance(put.state, ToolCompleted)
    assert put.state.metadata["outputPaths"] == others
    assert recalled(messages) == ["Nothing in this session holds all of: heron"]
