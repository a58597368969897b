"""The files around the steps of an answer: what is recorded of them, and when git is asked for anything."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from msgspec.structs import force_setattr, replace

from holdfast import git
from holdfast.app import Holdfast
from holdfast.errors import Conflict, ContextError
from holdfast.location.shadow import place
from holdfast.location.shadow.repository import NEW_BYTES_MAX, Shadow, Tree
from holdfast.person import directories
from holdfast.runtime.calls import kept_files, step_trees
from holdfast.runtime.calls.step_trees import StepTrees
from holdfast.runtime.history import file_changes
from holdfast.schema.file_change import FileChange
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import Part, PatchPart, StepFinishPart, StepStartPart, ToolPart
from holdfast.schema.request import PermissionAnswer, PermissionRequest
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.tools.builtin import change
from tests.location.box.users import BASE
from tests.stories import inside
from tests.stories.permissions import asked
from tests.stories.tools import command
from tests.stories.world import Attached, World


async def answered(hf: Holdfast, session: str) -> list[MessageWithParts]:
    """The answers of a session after one prompt."""
    await hf.sessions.process(session, "go", check=False)
    found = (await hf.sessions.messages(session)).messages
    return [each for each in found if each.info.__struct_config__.tag == "assistant"]


async def shadow_of(hf: Holdfast, session: str) -> Shadow:
    """The shadow repository of a session's project, which is in no repository."""
    record = await hf.sessions.get(session)
    top = Path(record.directory)
    return Shadow(place.git_dir(directories.data(), record.project_id, top), top)


def only(parts: Sequence[Part], kind: type) -> Any:
    (found,) = [part for part in parts if isinstance(part, kind)]
    return found


@pytest.mark.ci
async def test_what_a_tool_notes_and_what_is_observed(world: World) -> None:
    """A write is noted with its content, before and after; what a command did is observed, file by file. The
    trees of a step are on its start and its finish, and what changed between them in its patch.
    """
    world.settings(snapshot=True)
    work = "open('new', 'a').write('more\\n'); open('big', 'wb').truncate(3 << 20); open('old', 'w')"
    (world.project / "old").write_text("was\n")
    steps = (
        Step(Call("write", {"filePath": "new", "content": "one\n"})),
        Step(Call("act", {})),
        Step(Say("ok")),
    )
    async with world.open(*steps) as (hf, _):
        hf.tools.register(command(work))
        session = await world.session(hf)
        first, second, third = await answered(hf, session)
        shadow = await shadow_of(hf, session)
        kept = {each.id for each in shadow.kept() if each.folder == place.folder_of(session)}

    (noted,) = file_changes.noted(only(first.parts, ToolPart).state.metadata)
    assert noted == FileChange(path=str(world.project / "new"), after=noted.after)
    assert shadow.content(noted.after or "") == b"one\n"
    start, finish, patch = (only(first.parts, kind) for kind in (StepStartPart, StepFinishPart, PatchPart))
    assert (start.left, patch.hash, patch.changes) == (finish.snapshot, start.snapshot, None)
    assert patch.files == [noted.path]

    seen = {Path(each.path).name: each for each in only(second.parts, PatchPart).changes}
    assert {name: each.covered for name, each in seen.items()} == {"new": True, "old": True, "big": False}
    assert (seen["new"].before, shadow.content(seen["new"].after)) == (noted.after, b"one\nmore\n")
    assert (shadow.content(seen["old"].before), shadow.content(seen["old"].after)) == (b"was\n", b"")
    assert only(second.parts, StepStartPart).snapshot == finish.snapshot
    assert [part.snapshot for part in third.parts if isinstance(part, StepStartPart)] == [None]
    assert not any(file_changes.is_cut_off(each) for each in (first, second, third))
    assert {noted.after, start.snapshot, finish.snapshot} <= kept
    assert NEW_BYTES_MAX < 3 << 20


async def test_a_step_that_only_reads_asks_git_for_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does one whose call could not be read, or one without calls."""
    world.settings(snapshot=True)
    (world.project / "a").write_text("x\n")
    asked: list[tuple[str, ...]] = []
    run = git.run

    def counted(arguments: Any, **more: Any) -> Any:
        asked.append(arguments)
        return run(arguments, **more)

    steps = (Step(Call("read", {"filePath": "a"}), Call("grep", {"pattern": "x"})), Step(Say("ok")))
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        monkeypatch.setattr(git, "run", counted)
        await answered(hf, session)

    assert asked == []


@pytest.mark.parametrize("why", ["switched off", "no git", "git fails"])
async def test_without_snapshots_the_work_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Where they are switched off nothing is kept; where git fails the change is noted as not covered."""
    world.settings(snapshot=why != "switched off")
    if why == "no git":
        monkeypatch.setattr("shutil.which", lambda _: None)
    if why == "git fails":
        blocked = directories.data() / "snapshot"
        blocked.parent.mkdir(parents=True, exist_ok=True)
        blocked.write_text("in the way")
    steps = (Step(Call("write", {"filePath": "new", "content": "one\n"})), Step(Say("ok")))
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        first, last = await answered(hf, session)

    call = only(first.parts, ToolPart)
    assert ((world.project / "new").read_text(), call.state.__struct_config__.tag) == ("one\n", "completed")
    uncovered = [FileChange(path=str(world.project / "new"), covered=False)]
    assert file_changes.noted(call.state.metadata) == (uncovered if why == "git fails" else [])
    assert [part.snapshot for part in first.parts if isinstance(part, StepStartPart)] == [None]
    assert only(last.parts, StepFinishPart).reason == "stop"


async def test_a_write_that_fails_is_not_noted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is left in the ledger: undo has nothing to take back."""
    world.settings(snapshot=True)

    def failing(each: change.Change) -> None:
        raise Conflict(f"{each.target.real} exists by now")

    monkeypatch.setattr(change, "_write", failing)
    steps = (Step(Call("write", {"filePath": "a", "content": "one\n"})), Step(Say("ok")))
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        first, _last = await answered(hf, session)

    state = only(first.parts, ToolPart).state
    assert (state.__struct_config__.tag, state.metadata[file_changes.FILES]) == ("error", [])


@pytest.mark.ci
async def test_what_a_formatter_makes_of_it_is_what_the_call_left(world: World) -> None:
    """One change, from what the file held first to what it holds in the end."""
    upper = [BASE, "-c", "import sys;p=sys.argv[1];t=open(p).read();open(p,'w').write(t.upper())"]
    world.settings(snapshot=True, formatter={"up": {"command": [*upper, "$FILE"], "extensions": [".txt"]}})
    (world.project / "a.txt").write_text("zero\n")
    steps = (
        Step(Call("read", {"filePath": "a.txt"})),
        Step(Call("write", {"filePath": "a.txt", "content": "one\n"})),
        Step(Say("ok")),
    )
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        _first, second, _last = await answered(hf, session)
        shadow = await shadow_of(hf, session)

    (noted,) = file_changes.of_parts(second.parts)
    contents = [shadow.content(id or "") for id in (noted.before, noted.after)]
    assert (contents, noted.observed) == ([b"zero\n", b"ONE\n"], False)


async def test_a_content_that_is_too_large_is_not_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is made and noted; undo will name it."""
    world.settings(snapshot=True)
    monkeypatch.setattr(kept_files, "BYTES_MAX", 3)
    steps = (Step(Call("write", {"filePath": "a", "content": "four"})), Step(Say("ok")))
    async with world.open(*steps) as (hf, _):
        first, _last = await answered(hf, await world.session(hf))

    assert file_changes.noted(only(first.parts, ToolPart).state.metadata) == [
        FileChange(path=str(world.project / "a"), covered=False)
    ]


async def test_what_the_user_does_while_they_are_asked_is_theirs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree is taken again after a question that took its time."""
    world.settings(snapshot=True, permission={"act": "ask"})
    monkeypatch.setattr(step_trees, "ASKED_S", 0.0)

    @tool(name="act", description="Asks, then writes.")
    async def act(context: ToolContext) -> str:
        await context.ask("act", ["*"])
        (Path(context.directory) / "theirs").write_text("the agent\n")
        return "done"

    async def on_ask(_: PermissionRequest) -> PermissionAnswer | None:
        (world.project / "mine").write_text("the user\n")
        return PermissionAnswer(reply="once")

    async with world.open(Step(Call("act", {})), Step(Say("ok")), on_ask=on_ask) as (hf, _):
        hf.tools.register(act)
        session = await world.session(hf)
        first, _last = await answered(hf, session)

    assert [Path(each.path).name for each in file_changes.of_parts(first.parts)] == ["theirs"]


async def test_an_interrupt_keeps_what_was_observed(world: World) -> None:
    """The step is complete: what the command had done by then is known."""
    world.settings(snapshot=True)
    begun = anyio.Event()

    @tool(name="act", description="Writes, then waits.")
    async def act(context: ToolContext) -> str:
        (Path(context.directory) / "half").write_text("x\n")
        begun.set()
        await anyio.sleep_forever()
        return "never"

    async with world.open(Step(Call("act", {}))) as (hf, _):
        hf.tools.register(act)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(30):
            await begun.wait()
            await hf.sessions.interrupt(session)
            await hf.sessions.wait(session)
        (answer,) = [each for each in (await hf.sessions.messages(session)).messages if len(each.parts) > 1]

    assert [Path(each.path).name for each in file_changes.of_parts(answer.parts)] == ["half"]
    assert not file_changes.is_cut_off(answer)


async def test_of_the_home_directory_no_tree_is_taken(world: World) -> None:
    """It would hold everything the user has; what a tool writes there is kept and shown all the same."""
    world.settings(snapshot=True)
    world.project = world.home
    steps = (Step(Call("write", {"filePath": "new", "content": "one\n"})), Step(Say("ok")))
    async with world.open(Step(Say("hello")), *steps) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "hello?")
        _hello, first, _last = await answered(hf, session)
    async with world.open() as (hf, _):  # Closing waits for what is written beside the work.
        summary = (await hf.sessions.get(session)).summary

    assert summary is not None
    assert (summary.files, summary.additions) == (1, 1)
    (noted,) = file_changes.of_parts(first.parts)
    assert (noted.covered, noted.after is not None) == (True, True)
    assert only(first.parts, StepStartPart).snapshot is None


@pytest.mark.ci
async def test_a_call_that_waited_for_the_user_is_observed_by_itself(world: World) -> None:
    """What the user did while it waited, over a restart, is theirs; what the step had done before stays."""
    world.settings(snapshot=True, permission={"act": "ask"})

    def acts() -> Tool:
        @tool(name="act", description="Asks, then writes.")
        async def act(context: ToolContext, name: str) -> str:
            await context.ask("act", [name])
            (Path(context.directory) / name).write_text("the agent\n")
            return "done"

        return act

    write = Call("write", {"filePath": "first", "content": "one\n"})
    async with world.open(Step(write, Call("act", {"name": "second"})), presence=Attached()) as (hf, _):
        hf.tools.register(acts())
        engine = inside.engine(hf)
        force_setattr(engine, "limits", replace(engine.limits, answer_wait_ms=20))
        session = await world.session(hf)
        await hf.sessions.process(session, "go", check=False)
        (waits,) = await asked(hf, session)
    (world.project / "mine").write_text("the user\n")
    async with world.open(Step(Say("ok")), presence=Attached()) as (hf, _):
        hf.tools.register(acts())
        await hf.sessions.reply(session, waits.id, "once")
        await hf.sessions.wait(session)
        answer = (await hf.sessions.messages(session)).messages[1]

    found = file_changes.of_parts(answer.parts)
    assert [(Path(each.path).name, each.observed) for each in found] == [("first", False), ("second", True)]
    assert not file_changes.is_cut_off(answer)


def trees_of(hf: Holdfast, world: World, *, snapshot: str | None = None, worker: Any = None) -> StepTrees:
    """The trees of a step that began with a tree, or without one yet; its run keeps what would be written."""
    run: Any = SimpleNamespace(
        engine=inside.engine(hf), interrupted=False, changed_files=False, recorder=FakeRecorder("ses_1")
    )
    ids: Any = {"id": "prt_1", "session_id": "ses_1", "message_id": "msg_1"}
    at = worker or inside.engine(hf).shadows.at("global", world.project)
    return StepTrees(run, at, StepStartPart(**ids, snapshot=snapshot))


async def test_a_step_that_was_cut_off_stays_one(world: World) -> None:
    """A call of it that is run again is observed; what the dead process had changed is not known."""
    world.settings(snapshot=True)
    async with world.open() as (hf, _):
        trees = trees_of(hf, world, snapshot="4b825dc642cb6eb9a060e54bf8d69288fbee4904")
        (world.project / "of the dead").write_text("x")
        await trees.begin()
        (world.project / "again").write_text("x")
        await trees.end([])

    recorder: Any = trees._run.recorder
    assert recorder.held == []
    (patch,) = recorder.added
    assert [Path(each).name for each in patch.files] == ["again"]


@pytest.mark.parametrize(("calls", "seen"), [(1, ["later"]), (2, ["later", "sooner"])])
async def test_what_another_call_wrote_while_one_was_asked_about(
    world: World, calls: int, seen: list[str]
) -> None:
    """The tree is taken again after the question, unless there is another call that may have written."""
    world.settings(snapshot=True)
    async with world.open() as (hf, _):
        trees = trees_of(hf, world)
        for _ in range(calls):
            await trees.begin()
        (world.project / "sooner").write_text("x")
        await trees.asked(60.0)
        (world.project / "later").write_text("x")
        await trees.end([])

    recorder: Any = trees._run.recorder
    (patch,) = recorder.added
    assert [Path(each.path).name for each in patch.changes] == seen


async def test_what_is_recorded_of_a_step_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names, and the changes."""
    world.settings(snapshot=True)
    monkeypatch.setattr(step_trees, "OBSERVED_MAX", 2)
    async with world.open() as (hf, _):
        trees = trees_of(hf, world)
        await trees.begin()
        for name in "abc":
            (world.project / name).write_text("x")
        await trees.end([])

    recorder: Any = trees._run.recorder
    (patch,) = recorder.added
    assert [Path(each).name for each in patch.files] == ["a", "b"]
    assert [Path(each.path).name for each in patch.changes] == ["a", "b"]


@pytest.mark.parametrize(
    ("interrupted", "within_s"), [(False, step_trees.END_S), (True, step_trees.INTERRUPTED_S)]
)
async def test_how_long_the_last_tree_is_waited_for(world: World, interrupted: bool, within_s: float) -> None:
    """The user who interrupts waits for it, too."""
    world.settings(snapshot=True)
    waits = []

    class Worker:
        refused = None

        async def take(self, folder: str, *, within_s: float) -> None:
            del folder
            waits.append(within_s)
            raise ContextError("too long")

    async with world.open() as (hf, _):
        trees = trees_of(hf, world, worker=Worker())
        trees._begun = asyncio.create_task(_tree())
        trees._run.interrupted = interrupted
        assert await trees.end([]) is None

    assert waits == [within_s]


async def _tree() -> Tree:
    return Tree("4b825dc642cb6eb9a060e54bf8d69288fbee4904")


class FakeRecorder:
    """Keeps what would be written."""

    def __init__(self, session: str) -> None:
        self.session, self.lost = session, False
        self.held: list[Any] = []
        self.added: list[Any] = []

    def hold(self, *changes: Any) -> None:
        self.held += changes

    async def add_parts(self, *makes: Any) -> None:
        self.added += [make("prt_2") for make in makes]


async def test_settings_say_how_much_room_there_is(world: World) -> None:
    """In MiB; without a word 2 GiB."""
    world.settings(snapshot=True, snapshot_budget=7)
    async with world.open() as (hf, _):
        engine = inside.engine(hf)
        session = await hf.sessions.get(await world.session(hf))
        worker = engine.shadow(session, await engine.workspace(session))
        assert worker is not None
        assert worker.budget == 7 << 20
