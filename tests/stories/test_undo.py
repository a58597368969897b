"""Undo: files come back and messages are hidden, until the next prompt makes it last."""

from pathlib import Path

import pytest

from holdfast.app import Holdfast
from holdfast.errors import NotFound, Refused, UndoConflict
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from tests.stories.undo import ALLOWED, LINES, act, command, edit, files, outcomes, read, said, turn, write
from tests.stories.world import World

pytestmark = pytest.mark.needs("git")


async def test_a_prompt_is_taken_back(world: World) -> None:
    """The agent's files are as they were before it; `unrevert` brings files and messages back."""
    world.settings(permission=ALLOWED, snapshot=True)
    (world.project / "a").write_text("one\n")
    steps = [*turn(write("a2", "A\n")), *turn(read("a"), edit("a", "one", "two"), write("new", "N\n"))]
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "first")
        await hf.sessions.process(session, "second")
        after = files(world.project)
        assert after == {"a": "two\n", "a2": "A\n", "new": "N\n"}

        undo = await hf.sessions.revert(session)

        assert files(world.project) == {"a": "one\n", "a2": "A\n"}
        assert outcomes(undo) == {"a": "restored", "new": "deleted"}
        assert await said(hf, session) == ["first", "done"]
        assert await said(hf, session, reverted=True) == ["first", "done", "second", "done"]

        undo = await hf.sessions.unrevert(session)

        assert files(world.project) == after
        assert outcomes(undo) == {"a": "restored", "new": "restored"}
        assert await said(hf, session) == ["first", "done", "second", "done"]
        assert (await hf.sessions.get(session)).revert is None
