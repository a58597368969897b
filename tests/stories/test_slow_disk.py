"""An interrupt meets a write that the disk has not finished: what may have happened is not called undone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.location import write_path
from holdfast.runtime.calls import tool_calls
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from holdfast.tools.shell.output import Output
from tests.stories import inside
from tests.stories.world import World
from tests.until import until


class SlowDisk:
    """It holds each write, after the file has its new content, until the test opens the gate."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.gate = threading.Event()
        self.written: list[Path] = []


@contextmanager
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    disk, real = SlowDisk(), write_path.write

    def write(path: Path, data: bytes, *, seen: str | None, like: write_path.Kept | None = None) -> None:
        real(path, data, seen=seen, like=like)
        disk.written.append(path)
        disk.begun.set()
        assert disk.gate.wait(20)

    monkeypatch.setattr(write_path, "write", write)
    try:
        yield disk
    finally:
        disk.gate.set()


PATCH = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Add File: b.txt\n+b\n*** End Patch"
CALLS = {
    "write": Call("write", {"filePath": "a.txt", "content": "a\n"}, id="c"),
    "apply_patch": Call("apply_patch", {"patchText": PATCH}, id="c"),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_write_that_the_disk_finishes_late_has_happened(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The interrupt waits for it, within a bound; a patch is written whole."""
    monkeypatch.setattr(tool_calls, "PATIENCE_S", 0.0)
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"gpt-5.2": {"limit": {"context": 100_000, "output": 8_000}}},
    }
    patches = {"model": "scripted/gpt-5.2", "provider": {"scripted": entry}} if name != "write" else {}
    world.settings(permission={"*": "allow"}, **patches)
    with slow_disk(monkeypatch) as disk:
        async with world.open(Step(CALLS[name])) as (hf, _), anyio.create_task_group() as group:
            session = await world.session(hf)
            await hf.sessions.prompt(session, "go")
            await until(disk.begun.is_set)
            run = inside.running(hf, session).run
            assert run is not None
            group.start_soon(hf.sessions.interrupt, session)
            await until(lambda: run.interrupted)
            disk.gate.set()
            await hf.sessions.wait(session)
            states = await tool_states(hf, session)

    assert [type(state) for state in states] == [ToolCompleted]
    assert [path.name for path in disk.written] == (["a.txt"] if name == "write" else ["a.txt", "b.txt"])


async def test_a_write_that_the_disk_does_not_finish_is_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is told which file to look at before it does it again."""
    monkeypatch.setattr(tool_calls, "PATIENCE_S", 0.0)
    monkeypatch.setattr(tool_calls, "RECORD_S", 0.01)
    world.settings(permission={"*": "allow"})
    file = world.project / "a.txt"
    told = answered("c", f"Whether {file} changed is unknown: look at the actual state before you")
    with slow_disk(monkeypatch) as disk:
        async with world.open(Step(CALLS["write"]), Step(Say("ok"), expect=told)) as (hf, _):
            session = await world.session(hf)
            await hf.sessions.prompt(session, "go")
            await until(disk.begun.is_set)
            await hf.sessions.interrupt(session)
            (state,) = await tool_states(hf, session)
            await hf.sessions.process(session, "And?")
            disk.gate.set()

    assert isinstance(state, ToolError)
    assert state.metadata is not None
    assert (state.metadata["outcome"], state.metadata["interrupted"]) == ("unknown", True)
    assert file.read_text() == "a\n"


async def test_a_tool_that_goes_on_after_its_effect_is_unknown_too(world: World) -> None:
    """It has happened, and the tool did not live to say so."""
    done = anyio.Event()

    @tool(name="act")
    async def act(context: ToolContext) -> str:
        """Do something, and then wait."""
        with context.effect("the lamp"):
            done.set()
        await anyio.sleep_forever()
        return "never"

    async with world.open(Step(Call("act", {}, id="c"))) as (hf, _):
        hf.tools.register(act)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await done.wait()
        await hf.sessions.interrupt(session)
        (state,) = await tool_states(hf, session)

    assert isinstance(state, ToolError)
    assert state.error.startswith(
        "The call was interrupted while it was at work. Whether the lamp changed is"
    )


@pytest.mark.needs("bash")
async def test_a_command_that_was_begun_is_unknown(world: World) -> None:
    """What it did until then is done, and the model is told to look."""
    world.settings(permission={"*": "allow"})
    made = world.project / "made"
    told = answered("c", "Whether anything that the command reaches changed is unknown")
    steps = Step(Call("bash", {"command": "touch made; sleep 60"}, id="c")), Step(Say("ok"), expect=told)
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(made.exists)
        await hf.sessions.interrupt(session)
        (state,) = await tool_states(hf, session)
        await hf.sessions.process(session, "And?")

    assert isinstance(state, ToolError)
    assert state.metadata is not None
    assert (state.metadata["outcome"], state.metadata["interrupted"]) == ("unknown", True)


@pytest.mark.ci
@pytest.mark.needs("bash")
async def test_a_command_that_has_ended_is_completed_however_late_its_output_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its exit code is known: the interrupt waits until that is recorded."""
    monkeypatch.setattr(tool_calls, "PATIENCE_S", 0.0)
    world.settings(permission={"*": "allow"})
    begun, gate, finish = anyio.Event(), anyio.Event(), Output.finish

    async def slow(self: Output) -> None:
        begun.set()
        await gate.wait()
        await finish(self)

    monkeypatch.setattr(Output, "finish", slow)
    calls = Step(Call("bash", {"command": "echo done; exit 3"}, id="c"))
    async with world.open(calls) as (hf, _), anyio.create_task_group() as group:
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await begun.wait()
            run = inside.running(hf, session).run
            assert run is not None
            group.start_soon(hf.sessions.interrupt, session)
            await until(lambda: run.interrupted)
            gate.set()
            await hf.sessions.wait(session)
        (state,) = await tool_states(hf, session)

    assert isinstance(state, ToolCompleted)
    assert (state.output, state.metadata["exit"]) == ("done\n\n(Exit code 3.)", 3)


async def test_before_the_first_byte_a_call_is_interrupted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has happened while the user is asked."""
    monkeypatch.setattr(tool_calls, "PATIENCE_S", 0.0)
    world.settings(permission={"edit": "ask"})
    asked = anyio.Event()

    async def on_ask(request: Any) -> None:
        asked.set()
        await anyio.sleep_forever()

    async with world.open(Step(CALLS["write"]), on_ask=on_ask) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await asked.wait()
        await hf.sessions.interrupt(session)
        (state,) = await tool_states(hf, session)

    assert isinstance(state, ToolError)
    assert state.metadata is not None
    assert state.metadata["outcome"] == "interrupted"
    assert list(world.project.iterdir()) == []


async def tool_states(hf: Any, session: str) -> list[Any]:
    page = await hf.sessions.messages(session)
    return [part.state for each in page.messages for part in each.parts if isinstance(part, ToolPart)]
