"""What a session has outside of the store goes with it, unless another session names it."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast.app import Holdfast
from holdfast.location.shadow import place, stored
from holdfast.person import directories
from holdfast.sessions import erase
from holdfast.store.query import SessionQuery
from holdfast.store.record import SessionPage
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories.world import World


def kept() -> dict[str, int]:
    """How much is kept of each session, and how many outputs."""
    (shadow,) = stored.repositories(directories.data())
    found = [each.folder for each in shadow.kept()]
    outputs = directories.data() / "tool-output"
    return {folder: found.count(folder) for folder in found} | {"outputs": len(list(outputs.glob("tool_*")))}


async def worked(hf: Holdfast, world: World) -> str:
    """A session that has written a file, and an output that is too long for the record."""

    @tool(name="long", description="Says much.")
    async def long(context: ToolContext) -> str:
        del context
        return "word\n" * 100_000

    hf.tools.register(long)
    session = await world.session(hf)
    await hf.sessions.process(session, "go")
    return session


def steps(name: str) -> tuple[Step, ...]:
    write = Call("write", {"filePath": name, "content": f"{name}\n"})
    return (Step(write, Call("long", {})), Step(Say("ok")))


@pytest.mark.ci
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
async def test_forks_keep_what_they_name(world: World, order: tuple[int, ...]) -> None:
    """A session, its fork and the fork of that: nothing goes before the last that names it is erased."""
    world.settings(snapshot=True)
    async with world.open(*steps("a")) as (hf, _):
        first = await worked(hf, world)
        second = (await hf.sessions.fork(first)).id
        third = (await hf.sessions.fork(second)).id
        before = kept()
        sessions = [first, second, third]
        for number, at in enumerate(order):
            await hf.sessions.remove(sessions[at])
            assert kept() == (before if number < 2 else {"outputs": 0})

    assert before == {place.folder_of(first): 3, "outputs": 1}


@pytest.mark.ci
async def test_children_go_with_their_parent_and_others_stay(world: World) -> None:
    """What is kept of other sessions of the project is left alone, and archiving removes nothing."""
    world.settings(snapshot=True)
    async with world.open(*steps("a"), *steps("b")) as (hf, _):
        parent = (await hf.sessions.create(directory=world.project)).id
        child = await worked(hf, world)
        await hf.sessions.process(await world.session(hf, parent=parent), "go")
        await hf.sessions.archive(child)
        before = kept()
        await hf.sessions.remove(parent)
        after = kept()

    assert sorted(before.values()) == [2, 3, 3]
    assert after == {place.folder_of(child): 3, "outputs": 1}


async def test_doctor_knows_sessions_and_their_sources(world: World) -> None:
    """A source that is gone is named by its fork; what nobody names belongs to nobody."""
    world.settings(snapshot=True)
    async with world.open(*steps("a")) as (hf, _):
        first = await worked(hf, world)
        second = (await hf.sessions.fork(first)).id
        await hf.sessions.remove(first)
        known = await erase.named(hf.store)

    assert known == {first, second}
    assert stored.orphans(directories.data(), known) == []
    (found,) = stored.orphans(directories.data(), {second})
    assert (found.worktree, found.is_gone, found.sessions) == (str(Path(world.project)), False, (first,))
    assert found.bytes > 0


@pytest.mark.ci
async def test_a_session_that_cannot_be_read_may_name_anything(world: World) -> None:
    """Nothing goes while it is there, since it may be a fork; and what is its own has an owner."""
    world.settings(snapshot=True)
    async with world.open(*steps("a")) as (hf, _):
        first = await worked(hf, world)
        fork = (await hf.sessions.fork(first)).id
    before = kept()
    db = sqlite3.connect(world.store.removeprefix("sqlite://"))
    with db:
        db.execute("UPDATE session SET data='{' WHERE id=?", (fork,))
    db.close()
    async with world.open() as (hf, _):
        await hf.sessions.remove(first)
        known = await erase.named(hf.store)

    assert kept() == before
    assert known == {fork}


async def test_a_session_whose_content_cannot_be_had_is_known() -> None:
    """By its id: that is all there is of it."""

    class Damaged:
        async def sessions(self, query: SessionQuery) -> SessionPage:
            del query
            return SessionPage((), damaged=("ses_1",))

    store: Any = Damaged()
    assert await erase.named(store) == {"ses_1"}
