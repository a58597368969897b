"""Closing waits for what it has ended, and for nothing without a bound."""

import subprocess

import anyio
import pytest

from holdfast.runtime.process import closing, coordinator
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step
from tests.stories import inside
from tests.stories.world import World


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
