"""What was compacted stays in the transcript, and the model can find it again."""

import anyio
import pytest

from holdfast.store.query import SearchQuery
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from holdfast.tools.builtin.recall import around
from tests.stories.world import World

pytestmark = pytest.mark.ci


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
        with anyio.fail_after(10):
            while not await hf.store.search(SearchQuery("heron")):
                await anyio.sleep(0.01)
        await hf.sessions.process(session, "where was it?")
        after = (await hf.sessions.messages(session)).messages
    results = {
        part.call_id: getattr(part.state, "output", None) or part.state.error  # type: ignore[union-attr]
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
