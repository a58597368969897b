"""With EXPERIMENTAL_WATCHER clients learn what changes in a project; without it nothing is watched."""

import subprocess
import sys
from contextlib import ExitStack
from typing import Any

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.stories import inside
from tests.stories.tools import Deed
from tests.stories.world import World
from tests.until import until

EVENT = "file.watcher.updated"


async def write_until(world: World, heard: list[Any]) -> None:
    """Change a file again and again: the watch begins at some moment."""
    with anyio.fail_after(20):
        while not heard:
            (world.project / "a.txt").write_text(f"{len(heard)}")
            await anyio.sleep(0.05)


@pytest.mark.ci
async def test_who_follows_a_session_learns_what_changes_and_nothing_is_woken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a client follows it: then the thread ends. A client of another session learns nothing."""
    monkeypatch.setenv("HOLDFAST_EXPERIMENTAL_WATCHER", "1")
    elsewhere = world.project.parent / "elsewhere"
    elsewhere.mkdir()
    heard: list[Any] = []
    others: list[Any] = []
    everything: list[Any] = []

    async def follow(hf: Holdfast, session: str | None, into: list[Any]) -> None:
        async for frames in hf.feed.follow(session=session, types={EVENT}):
            into.extend(frames)

    async with world.open() as (hf, script):
        session = await world.session(hf)
        other = (await hf.sessions.create(directory=elsewhere)).id
        async with anyio.create_task_group() as group:
            group.start_soon(follow, hf, session, heard)
            group.start_soon(follow, hf, other, others)
            group.start_soon(follow, hf, None, everything)
            await write_until(world, heard)
            group.cancel_scope.cancel()
        await until(lambda: inside.watches(hf) == 0)
        assert script.requests == []

    assert heard[0].value()["file"] == str(world.project / "a.txt")
    assert heard[0].value()["event"] in ("add", "change")
    assert heard[0].event().properties.file == str(world.project / "a.txt")
    assert others == []
    assert [frame.value() for frame in everything[:1]] == [heard[0].value()]


@pytest.mark.ci
async def test_a_session_that_runs_is_watched(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever listens to everything learns of it."""
    monkeypatch.setenv("OPENCODE_EXPERIMENTAL_FILEWATCHER", "true")
    world.settings(permission={"*": "allow"})
    heard: list[Any] = []

    async def follow(hf: Holdfast) -> None:
        async for frames in hf.feed.follow(types={EVENT}):
            heard.extend(frames)

    deed = Deed("act", ask=False)
    deed.gate = anyio.Event()
    async with (
        world.open(Step(Call("act", {"what": "x"})), Step(Say("done"))) as (hf, _),
        anyio.create_task_group() as group,
    ):
        hf.tools.register(deed.tool)
        group.start_soon(follow, hf)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await deed.begun.wait()
        await write_until(world, heard)
        deed.gate.set()
        await hf.sessions.wait(session)
        group.cancel_scope.cancel()

    assert heard[0].value()["file"] == str(world.project / "a.txt")


async def test_no_watch_outlives_the_application(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a client still holds ends with it."""
    monkeypatch.setenv("HOLDFAST_EXPERIMENTAL_WATCHER", "1")
    with ExitStack() as held:
        async with world.open() as (hf, _):
            held.enter_context(inside.hold(hf, await world.session(hf)))
            await until(lambda: inside.watches(hf) == 1)
        assert inside.watches(hf) == 0


async def test_a_home_is_not_watched(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It holds more than a project; the operator is warned."""
    monkeypatch.setenv("HOLDFAST_EXPERIMENTAL_WATCHER", "1")
    async with world.open(Step(Say("done"))) as (hf, _):
        session = (await hf.sessions.create(directory=world.home, title="Home")).id
        await hf.sessions.process(session, "go")
    assert f"{world.home} holds more than a project; its files are not watched" in caplog.text


@pytest.mark.ci
def test_without_the_flag_nothing_is_imported() -> None:
    """Neither the library nor our own half of it."""
    program = (
        "import sys, asyncio, holdfast, tempfile\n"
        "from holdfast.testing import ScriptedProvider\n"
        "async def main():\n"
        "    with tempfile.TemporaryDirectory() as top:\n"
        "        async with holdfast.open(f'sqlite://{top}/s.db', provider=ScriptedProvider()) as hf:\n"
        "            session = (await hf.sessions.create(directory=top)).id\n"
        "            async for _ in hf.feed.follow('beginning', session=session): break\n"
        "asyncio.run(main())\n"
        "print(*sys.modules)\n"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "watchfiles" not in out
    assert "workspace.watches" not in out
