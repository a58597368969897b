"""An agent changes files: what it has read it may change, over restarts too, and clients learn of it."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from holdfast.app import Holdfast
from holdfast.location import write_path
from holdfast.schema.file_part import FilePart
from holdfast.schema.part import ToolPart
from holdfast.schema.prompt import FilePartInput, PartInput, TextPartInput
from holdfast.schema.source import FileSource, SourceText
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.store.batch import Batch
from holdfast.store.put import put
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from tests.stories import inside
from tests.stories.crashing import Machine, life
from tests.stories.epochs import updates
from tests.stories.tools import Deed
from tests.stories.world import World
from tests.until import until

ALLOWED = {"edit": "allow", "read": "allow"}


async def outcomes(hf: Holdfast, session: str) -> list[str]:
    """How each call ended: its output, or its error."""
    found = []
    for message in (await hf.sessions.messages(session)).messages:
        for part in message.parts:
            if isinstance(part, ToolPart):
                state = part.state
                assert isinstance(state, ToolCompleted | ToolError)
                found.append(state.output if isinstance(state, ToolCompleted) else state.error)
    return found


def edit(old: str, new: str, id: str = "e") -> Call:
    return Call("edit", {"filePath": "a.txt", "oldString": old, "newString": new}, id=id)


READ = Call("read", {"filePath": "a.txt", "limit": 1}, id="r")


async def test_what_was_read_may_be_changed_after_a_restart_and_by_this_session_alone(world: World) -> None:
    """A ranged read counts for the whole file; another session has to read for itself."""
    world.settings(permission=ALLOWED)
    file = world.project / "a.txt"
    file.write_text("one\ntwo\n")
    async with world.open(Step(READ), Step(Say("seen"))) as (hf, _):
        session, other = await world.session(hf), await world.session(hf)
        await hf.sessions.process(session, "Look")
    steps = Step(edit("two", "2", "a")), Step(edit("2", "zwei", "b")), Step(Say("done"))
    async with world.open(*steps, Step(edit("zwei", "x")), Step(Say("no"))) as (hf, _):
        await hf.sessions.process(session, "Change it")
        await hf.sessions.process(other, "Change it")
        said = await outcomes(hf, other)

    assert file.read_text() == "one\nzwei\n"
    assert said == [f"{file} exists, and you have not read it yet. Read it first."]


async def test_what_somebody_else_changed_is_read_again_first(world: World) -> None:
    """Also if it was written by the session itself before."""
    world.settings(permission=ALLOWED)
    file = world.project / "a.txt"
    make = Call("write", {"filePath": "a.txt", "content": "one\n"}, id="w")
    async with world.open(Step(make), Step(Say("made"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.process(session, "Make it")
        file.write_text("one\nthe user's\n")
        script.add(Step(edit("one", "1", "a")), Step(READ), Step(edit("one", "1", "b")), Step(Say("done")))
        await hf.sessions.process(session, "Change it")
        said = await outcomes(hf, session)

    assert "was changed by somebody else" in said[1]
    assert file.read_text() == "1\nthe user's\n"


async def test_two_edits_of_one_turn_are_both_made(world: World) -> None:
    """They run side by side; the second sees the first before it is settled."""
    world.settings(permission=ALLOWED)
    file = world.project / "a.txt"
    file.write_text("one\ntwo\n")
    both = Step(edit("one", "1", "a"), edit("two", "2", "b"))
    async with world.open(Step(READ), both, Step(Say("done"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "Change it")

    assert file.read_text() == "1\n2\n"


async def test_clients_learn_of_an_edit(world: World) -> None:
    """By its real path, as soon as it is made."""
    world.settings(permission=ALLOWED)
    make = Call("write", {"filePath": "a.txt", "content": "one\n"}, id="w")
    heard: list[Any] = []

    async def listen(hf: Holdfast) -> None:
        async for frames in hf.feed.follow(types={"file.edited"}):
            heard.extend(frame.value() for frame in frames)

    async with world.open(Step(make), Step(Say("made"))) as (hf, _), anyio.create_task_group() as group:
        group.start_soon(listen, hf)
        await until(lambda: inside.followers(hf))
        await hf.sessions.process(await world.session(hf), "Make it")
        await until(lambda: heard)
        group.cancel_scope.cancel()

    assert heard == [{"file": str(world.project / "a.txt")}]


async def test_a_denied_edit_changes_nothing(world: World) -> None:
    """Nobody is there to ask, and no rule allows it."""
    world.settings(permission={"edit": "ask"})
    async with world.open(Step(Call("write", {"filePath": "a.txt", "content": "x"})), Step(Say("no"))) as (
        hf,
        _,
    ):
        await hf.sessions.process(await world.session(hf), "Make it")

    assert list(world.project.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("m", {"edit", "write"}),
        ("gpt-5.2", {"apply_patch"}),
        ("gpt-4.1", {"edit", "write"}),
        ("gpt-oss-20b", {"edit", "write"}),
    ],
)
async def test_a_model_is_shown_the_tools_that_it_was_trained_on(
    world: World, model: str, shown: set[str]
) -> None:
    """Patches for some, edits for the others."""
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {model: {"limit": {"context": 100_000, "output": 8_000}}},
    }
    world.settings(model=f"scripted/{model}", provider={"scripted": entry})
    async with world.open(Step(Say("ok"))) as (hf, script):
        await hf.sessions.process(await world.session(hf), "Hi")

    names = {tool.name for tool in script.requests[0].tools}
    assert names & {"edit", "write", "apply_patch"} == shown


@pytest.mark.parametrize("how", ["write", "apply_patch"])
async def test_instructions_beside_a_written_file_are_told(world: World, how: str) -> None:
    """At the next boundary, as for one that was read."""
    world.settings(permission=ALLOWED)
    folder = world.project / "deep"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Only in verse.")
    patch = "*** Begin Patch\n*** Add File: deep/a.txt\n+x\n*** End Patch"
    call = {
        "write": Call("write", {"filePath": "deep/a.txt", "content": "x"}),
        "apply_patch": Call("apply_patch", {"patchText": patch}),
    }[how]
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1"},
        "models": {"gpt-5.2": {"limit": {"context": 100_000, "output": 8_000}}},
    }
    if how == "apply_patch":
        world.settings(permission=ALLOWED, model="scripted/gpt-5.2", provider={"scripted": entry})
    async with world.open(Step(call), Step(Say("done"))) as (hf, script):
        await hf.sessions.process(await world.session(hf), "Write")

    assert any("Only in verse." in text for text in updates(script.requests[-1]))


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "behind it"])
async def test_a_write_that_a_crash_cut_off_is_unknown_and_names_its_file(
    world: World, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """The file is old or new; the model is told which one to look at."""
    world.settings(permission=ALLOWED)
    machine, plain, reached = Machine(), write_path.write, anyio.Event()
    mortals: list[Any] = []

    def dies(real: Path, data: bytes, *, seen: str | None, like: write_path.Kept | None = None) -> None:
        if after:
            plain(real, data, seen=seen, like=like)
        mortals[0].kill()
        reached.set()
        raise OSError("the process is gone")

    make = Call("write", {"filePath": "a.txt", "content": "one\n"}, id="w")
    async with life(world.store, machine, provider=ScriptedProvider(Step(make))) as (hf, mortal):
        mortals.append(mortal)
        monkeypatch.setattr(write_path, "write", dies)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "Make it")
        with anyio.fail_after(60):
            await reached.wait()
    monkeypatch.setattr(write_path, "write", plain)
    with ScriptedProvider(Step(Say("let me look"))) as script:
        async with life(world.store, machine, provider=script) as (hf, _):
            await hf.sessions.resume(session)
            await hf.sessions.wait(session)
            (said,) = await outcomes(hf, session)

    assert said.endswith("It may have changed a.txt.")
    assert (world.project / "a.txt").exists() is after


async def test_a_call_that_is_pruned_says_nothing_new(world: World) -> None:
    """Pruning marks old calls: what the session wrote since is still what it knows, also after a restart."""
    world.settings(permission=ALLOWED)
    file = world.project / "a.txt"
    file.write_text("one\n")
    async with world.open(Step(READ), Step(edit("one", "two", "a")), Step(Say("done"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "Change it")
        parts = [part for each in (await hf.sessions.messages(session)).messages for part in each.parts]
        (read,) = [part for part in parts if isinstance(part, ToolPart) and part.tool == "read"]
        assert isinstance(read.state, ToolCompleted)
        pruned = replace(read.state, time=replace(read.state.time, compacted=1))
        await hf.store.commit(Batch((put(replace(read, state=pruned)),)))
    async with world.open(Step(edit("two", "three", "b")), Step(Say("done"))) as (hf, _):
        await hf.sessions.process(session, "Change it again")

    assert file.read_text() == "three\n"


def attached(path: Path, *, url: str | None = None, shown: str = "one\n") -> list[PartInput]:
    """A prompt with a file, its text beside it, as clients send it."""
    source = FileSource(text=SourceText(value="@a.txt", start=7, end=13), path=path.name)
    return [
        TextPartInput(text="Change @a.txt"),
        TextPartInput(text=shown, synthetic=True),
        FilePartInput(mime="text/plain", url=url or path.as_uri(), filename=path.name, source=source),
    ]


@pytest.mark.parametrize("how", ["file", "range", "data"])
async def test_a_file_that_the_user_attached_counts_as_read_also_after_a_restart(
    world: World, how: str
) -> None:
    """By its address, by a part of it, or with its content; what changed since is read again first."""
    world.settings(permission=ALLOWED)
    file = world.project / "a.txt"
    file.write_text("one\n")
    urls = {
        "file": None,
        "range": f"{file.as_uri()}?start=1&end=1",
        "data": "data:text/plain;base64,b25lCg==",
    }
    async with world.open(Step(Say("seen"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, attached(file, url=urls[how]))
    steps = Step(edit("one", "1", "a")), Step(Say("done"))
    async with world.open(*steps, Step(edit("1", "x", "b")), Step(Say("no"))) as (hf, _):
        await hf.sessions.process(session, "Go on")
        file.write_text("the user's 1\n")
        await hf.sessions.process(session, "Go on")
        said = await outcomes(hf, session)

    assert file.read_text() == "the user's 1\n"
    assert "was changed by somebody else" in said[1]


async def test_what_was_attached_by_its_content_is_compared_with_the_file(world: World) -> None:
    """The model was shown something else than the file holds."""
    world.settings(permission=ALLOWED)
    file = world.project / "a.txt"
    file.write_text("two\n")
    async with world.open(Step(edit("two", "2")), Step(Say("no"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, attached(file, url="data:text/plain;base64,b25lCg=="))
        said = await outcomes(hf, session)

    assert "was changed by somebody else" in said[0]
    assert file.read_text() == "two\n"


async def test_a_file_counts_when_the_model_is_shown_its_prompt_and_not_before(world: World) -> None:
    """A prompt that waits in the inbox was shown to nobody."""
    world.settings(permission=ALLOWED)
    file = world.project / "a.txt"
    file.write_text("one\n")
    deed = Deed("act", ask=False)
    deed.gate = anyio.Event()
    steps = Step(Call("act", {"what": "x"}, id="x")), Step(edit("one", "1", "a")), Step(Say("no"))
    async with world.open(*steps, Step(edit("one", "1", "b")), Step(Say("done"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "Act")
        await deed.begun.wait()
        await hf.sessions.prompt(session, attached(file), delivery="queue")
        deed.gate.set()
        await hf.sessions.wait(session)
        said = await outcomes(hf, session)

    assert said[1] == f"{file} exists, and you have not read it yet. Read it first."
    assert file.read_text() == "1\n"


@pytest.mark.parametrize("what", ["folder", "gone", "pipe", "other host", "picture by address"])
async def test_what_the_model_was_not_shown_does_not_count(world: World, what: str) -> None:
    """Nothing fails, and nothing waits."""
    world.settings(permission=ALLOWED)
    path = world.project / "a.txt"
    match what:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "picture by address" | "other host":
            path.write_text("one\n")
        case _:
            pass
    parts = attached(path, url="file://other.example/a.txt" if what == "other host" else None)
    if what == "picture by address":
        parts[2] = FilePartInput(mime="image/png", url=path.as_uri())
    async with world.open(Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, parts)
        page = await hf.sessions.messages(session)
    assert [part.read for part in page.messages[0].parts if isinstance(part, FilePart)] == [None]
