"""Closing waits for what it has ended, and for nothing without a bound."""

import subprocess

import anyio
import pytest

from holdfast.errors import Refused
from holdfast.runtime.process import closing, coordinator
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories import inside
from tests.stories.world import World, shape
from tests.until import until


@pytest.mark.parametrize("which", [0, 1], ids=["a call's", "a launcher"])
async def test_a_program_that_does_not_end_holds_nothing_up(
    world: World, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    """As one that hangs in the kernel: here one that nobody has killed."""
    monkeypatch.setattr(coordinator, "CLOSE_S", 0.1)
    monkeypatch.setattr(coordinator, "RETIRE_S", 0.05)
    monkeypatch.setattr(closing, "LAST_S", 0.05)
    process = await anyio.open_process(["sleep", "600"], stdin=subprocess.DEVNULL)
    try:
        with anyio.fail_after(60):
            async with world.open(Step(Say("Hello."))) as (hf, _):
                await hf.sessions.process(await world.session(hf), "go")
                inside.ending(hf)[which].add(process)
        assert process.returncode is None
    finally:
        process.kill()
        await process.wait()


async def test_what_fails_to_close_keeps_nothing_else_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is closed, and the failure is told."""
    closed: list[str] = []

    async def close() -> None:
        closed.append("boxes")

    async def fail() -> None:
        closed.append("programs")
        raise OSError("no")

    async def use() -> None:
        async with world.open(Step(Say("Hello."))) as (hf, _):
            await hf.sessions.process(await world.session(hf), "go")
            engine = inside.engine(hf)
            monkeypatch.setattr(engine.ending, "close", fail)
            monkeypatch.setattr(engine.boxes, "close", close)

    with pytest.raises(OSError, match="no"):
        await use()

    assert closed == ["programs", "boxes"]


async def test_a_process_that_closes_begins_no_session(world: World) -> None:
    """A prompt that comes while it waits for a call is kept and refused in words; nothing of it is begun, no
    owner is registered again, and the next process answers it.
    """
    world.settings(permission={"*": "allow"})
    begun, gate = anyio.Event(), anyio.Event()

    @tool()
    async def act(context: ToolContext) -> str:
        """Take its time to end."""
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await gate.wait()
        return ""

    async with world.open(Step(Call("act", {}, id="c"))) as (hf, script):
        hf.tools.register(act)
        working, prompted = await world.session(hf), await world.session(hf)
        runs = inside.coordinator(hf)
        await hf.sessions.prompt(working, "go")
        with anyio.fail_after(60):
            await begun.wait()
            async with anyio.create_task_group() as group:
                group.start_soon(runs.close)
                await until(lambda: inside.running(hf, working).stop)
                with pytest.raises(Refused, match=r"is being closed; what session ses_\w+ owes waits until"):
                    await hf.sessions.prompt(prompted, "and you")
                gate.set()
        with pytest.raises(Refused, match="claims nothing more"):
            await runs.lease.owner()
        assert (runs.active(), runs.lease.id, len(script.requests)) == ([], None, 1)
        assert (await hf.store.session(prompted)).owner is None

    async with world.open(Step(Say("here"))) as (hf, _):
        await hf.sessions.resume(prompted)
        await hf.sessions.wait(prompted)
        page = await hf.sessions.messages(prompted)
    assert shape(page.messages) == [
        ("user", [("text", "and you")]),
        ("assistant", ["step-start", ("text", "here"), ("step-finish", "stop")]),
    ]
