"""Checks: real programs that look at what the model has changed, in whole sessions."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.runtime.calls import tool_calls
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from holdfast.tools.builtin import file_text
from tests.location.box.users import BASE, folder_of
from tests.stories.world import World
from tests.until import until


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """As for other stories, but not in /tmp, which a box covers."""
    with folder_of(os.geteuid()) as root:
        home = root / "home"
        home.mkdir()
        monkeypatch.setenv("HOME", str(home))
        yield World(root, home)


def program(folder: Path, name: str, text: str) -> list[str]:
    """A check of this text; it is given the path of a file."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(f"import pathlib, sys, time, os\nfile = pathlib.Path(sys.argv[1])\n{text}\n")
    return [BASE, str(path), "$FILE"]


async def states(hf: Holdfast, session: str) -> list[ToolCompleted]:
    """How the calls of a session were completed."""
    page = await hf.sessions.messages(session)
    parts = [part for message in page.messages for part in message.parts if isinstance(part, ToolPart)]
    return [part.state for part in parts if isinstance(part.state, ToolCompleted)]


@pytest.mark.ci
async def test_findings_go_to_the_model_and_a_rewrite_is_taken_up(world: World, tmp_path: Path) -> None:
    """A formatter runs first; the others see its result; the next edit needs no second reading."""
    upper = program(world.home.parent / "c", "upper", "file.write_text(file.read_text().upper())")
    lint = program(
        world.home.parent / "c",
        "lint",
        "print('saw', file.read_text().strip()); sys.exit('ONE' in file.read_text())",
    )
    world.settings(
        checks={"lint": {"command": lint, "files": ["*.txt"]}},
        formatter={"upper": {"command": upper, "extensions": [".txt"]}},
    )
    path = str(world.project / "a.txt")
    async with world.open(
        Step(Call("write", {"filePath": path, "content": "one\n"}, id="a")),
        Step(Call("edit", {"filePath": path, "oldString": "ONE", "newString": "two"}, id="b")),
        Step(Call("write", {"filePath": str(world.project / "b.md"), "content": "x"}, id="c")),
        Step(Say("ok")),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        first, second, third = await states(hf, session)

    assert first.output == (
        f"Made {path} (1 lines).\n\nA check has rewritten this; you are shown the result, and need not read "
        "it again.\nChecks passed: upper.\n\nThe check lint found (exit code 1):\nsaw ONE"
    )
    assert first.metadata["checks"] == [
        {"name": "upper", "outcome": "passed", "exit": 0, "output": ""},
        {"name": "lint", "outcome": "found", "exit": 1, "output": "saw ONE\n"},
    ]
    assert second.output.endswith("Checks passed: upper, lint.")
    assert "+TWO" in second.metadata["diff"]
    assert Path(path).read_text() == "TWO\n"
    assert "checks" not in third.metadata


@pytest.mark.ci
async def test_what_a_check_does_never_undoes_the_change(world: World, tmp_path: Path) -> None:
    """One that is not there, one that is late, one that deletes the file and one whose glob is none: each is
    said, in its order.
    """
    late = program(world.home.parent / "c", "late", "print('hm', flush=True); time.sleep(600)")
    gone = program(world.home.parent / "c", "gone", "file.unlink()")
    world.settings(
        checks={
            "missing": {"command": [str(tmp_path / "none"), "$FILE"]},
            "late": {"command": late, "timeout": 700},
            "gone": {"command": gone, "formats": True},
            "odd": {"command": late, "files": ["*.{py"]},
        }
    )
    path = str(world.project / "a.txt")
    async with world.open(
        Step(Call("write", {"filePath": path, "content": "one\n"}, id="a")), Step(Say("ok"))
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (state,) = await states(hf, session)

    assert state.output == (
        f"Made {path} (1 lines).\n\nChecks passed: gone.\n\nThe check missing could not be run: "
        f"{tmp_path / 'none'} could not be started: No such file or directory.\n\n"
        "The check late took too long and was ended. It had said:\nhm\n\n"
        "The check odd could not be run: A glob in its `files` cannot be used: a brace is not closed."
    )


async def test_an_interrupt_does_not_wait_for_the_second_reading(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read once more after its checks; where the disk hangs, the change is what was written."""
    fine = program(world.home.parent / "c", "fine", "pass")
    world.settings(checks={"fine": {"command": fine}}, sandbox={"mode": "off"})
    reading, go = threading.Event(), threading.Event()

    def load(*_: object) -> bytes:
        reading.set()
        go.wait(60)
        return b""

    path = world.project / "a.txt"
    write = Call("write", {"filePath": str(path), "content": "x\n"}, id="c")
    monkeypatch.setattr(tool_calls, "RECORD_S", 60)
    async with world.open(Step(write)) as (hf, _):
        session = await world.session(hf)
        monkeypatch.setattr(file_text, "load", load)
        await hf.sessions.prompt(session, "go")
        await until(reading.is_set)
        with anyio.fail_after(30):
            await hf.sessions.interrupt(session)
        (state,) = await states(hf, session)
        go.set()

    assert state.output == f"Made {path} (1 lines).\n\nThe check fine was interrupted."


async def test_an_interrupt_ends_the_checks_and_keeps_the_change(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edit has happened, and is recorded as done, however long its checks take to end; none is left."""
    monkeypatch.setattr(tool_calls, "PATIENCE_S", 0.0)
    begun = tmp_path / "begun"
    slow = program(
        world.home.parent / "c", "slow", f"open({str(begun)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )
    world.settings(checks={"slow": {"command": slow}}, sandbox={"mode": "off"})  # In a box ids are others.
    path = str(world.project / "a.txt")
    async with world.open(Step(Call("write", {"filePath": path, "content": "one\n"}, id="a"))) as (hf, _):
        session = await world.session(hf)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: hf.sessions.process(session, "go", check=False))
            await until(lambda: begun.exists() and begun.read_text() != "")
            await hf.sessions.interrupt(session)
        (state,) = await states(hf, session)
        await until(lambda: not Path(f"/proc/{begun.read_text()}").exists())

    assert state.output == f"Made {path} (1 lines).\n\nThe check slow was interrupted."
    assert Path(path).read_text() == "one\n"


async def test_a_project_names_checks_only_once_it_is_trusted(world: World, tmp_path: Path) -> None:
    """What a repository brings is not run on the strength of an edit."""
    ran = world.project / "ran"
    check = program(world.home.parent / "c", "mark", f"open({str(ran)!r}, 'w')")
    (world.project / "opencode.json").write_text(f'{{"checks": {{"mark": {{"command": {_json(check)}}}}}}}')
    path = str(world.project / "a.txt")
    async with world.open(
        Step(Call("write", {"filePath": path, "content": "one\n"}, id="a")),
        Step(Say("ok"), expect=answered("a", "Made")),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
    assert not ran.exists()


def _json(value: Any) -> str:
    import json

    return json.dumps(value)


@pytest.mark.ci
async def test_a_check_runs_in_the_box(world: World) -> None:
    """A test or a linter runs what the agent wrote; nobody is asked, and what was stopped is said."""
    outside = world.home / "outside"
    check = program(world.home.parent / "c", "test", "exec(file.read_text())")
    world.settings(checks={"test": {"command": check}})
    content = f"open({str(outside)!r}, 'w')"
    async with world.open(
        Step(Call("write", {"filePath": str(world.project / "a.py"), "content": content}, id="a")),
        Step(Say("ok")),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (state,) = await states(hf, session)

    assert f"(The box stopped a write to {outside}.)" in state.output
    assert not outside.exists()


@pytest.mark.ci
async def test_output_of_any_size_is_bounded(world: World, tmp_path: Path) -> None:
    """A check that prints without end is cut in its middle, and costs little memory."""
    loud = program(
        world.home.parent / "c", "loud", "print('begin'); print('x' * 50_000_000); print('end'); sys.exit(2)"
    )
    world.settings(checks={"loud": {"command": loud}})
    async with world.open(
        Step(Call("write", {"filePath": str(world.project / "a"), "content": "one\n"}, id="a")),
        Step(Say("ok")),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (state,) = await states(hf, session)
    assert len(state.output) < 8_000
    assert "begin\nxxx" in state.output
    assert state.output.endswith("end")
