"""What a call may do is judged by rules, then by a person, whose answer is a record."""

import asyncio
import contextlib
import os
import stat
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from msgspec.structs import force_setattr, replace

from holdfast.app import Holdfast
from holdfast.errors import Conflict, NotFound
from holdfast.schema.permission import Rule
from holdfast.schema.request import PermissionAnswer, PermissionRequest
from holdfast.schema.stored import Mark
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from tests.stories import inside
from tests.stories.permissions import asked, outcomes
from tests.stories.tools import Deed
from tests.stories.world import Attached, World


async def test_a_rule_that_denies_is_final(world: World) -> None:
    """The tool does not act, and the model hears why; the work goes on."""
    world.settings(permission={"act": {"*": "allow", "rm*": "deny"}})
    deed = Deed()
    async with world.open(
        Step(Call("act", {"what": "rm -rf"}, id="c")),
        Step(Say("ok"), expect=answered("c", "The rules deny act")),
    ) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")

    assert deed.done == []


async def test_where_nobody_is_attached_ask_means_no_and_is_recorded(world: World) -> None:
    """No question waits for ever."""
    world.settings(permission={"act": "ask"})
    deed = Deed()
    async with world.open(Step(Call("act", {"what": "x"})), Step(Say("ok"))) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        page = await hf.sessions.messages(session)
        requests = await hf.store.select("request", session=session)

    assert deed.done == []
    assert outcomes(page.messages) == [
        ("error", "act for x needs the user's consent, which cannot be asked for here.")
    ]
    assert requests == []


@pytest.mark.ci
async def test_a_person_says_yes_once(world: World) -> None:
    """The next call asks again; a question is answered once."""
    world.settings(permission={"act": "ask"})
    deed = Deed()
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c1")),
        Step(Call("act", {"what": "y"}, id="c2")),
        Step(Say("ok")),
        presence=Attached(),
    ) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (first,) = await asked(hf, session)
        assert (first.permission, first.patterns, first.metadata) == ("act", ["x"], {"what": "x"})
        await hf.sessions.reply(session, first.id, "once")
        with pytest.raises(Conflict, match="was answered already: once"):
            await hf.sessions.reply(session, first.id, "reject")
        with pytest.raises(NotFound):
            await hf.sessions.reply(session, "per_nothing", "once")
        (second,) = await asked(hf, session)
        await hf.sessions.reply(session, second.id, "once")
        await hf.sessions.wait(session)

    assert deed.done == ["x", "y"]


async def test_always_is_saved_for_the_project_and_covers_what_waits(world: World) -> None:
    """Another session of the project is not asked; a deny is not lifted by it."""
    world.settings(permission={"act": {"*": "ask", "never": "deny"}})
    deed = Deed()
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c1"), Call("act", {"what": "y"}, id="c2")),
        Step(Say("ok")),
        Step(Call("act", {"what": "z"}, id="c3"), Call("act", {"what": "never"}, id="c4")),
        Step(Say("ok")),
        presence=Attached(),
    ) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        first, _ = await asked(hf, session, 2)
        await hf.sessions.reply(session, first.id, "always")
        await hf.sessions.wait(session)
        other = await world.session(hf)
        await hf.sessions.process(other, "go")
        page = await hf.sessions.messages(other)

    assert sorted(deed.done) == ["x", "y", "z"]
    assert [state for state, _ in outcomes(page.messages)] == ["completed", "error"]


async def test_a_no_without_words_ends_the_work_and_covers_all_that_waits(world: World) -> None:
    """The model is not asked again until somebody prompts."""
    world.settings(permission={"act": "ask"})
    deed = Deed()
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c1"), Call("act", {"what": "y"}, id="c2")),
        presence=Attached(),
    ) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        first, _ = await asked(hf, session, 2)
        await hf.sessions.reply(session, first.id, "reject")
        await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
        waiting = await hf.store.select("request", session=session, mark=Mark.OPEN)

    assert (deed.done, waiting) == ([], [])
    assert outcomes(page.messages) == [("error", "The person said no to act.")] * 2
    assert len(script.requests) == 1


async def test_a_no_with_words_is_told_to_the_model(world: World) -> None:
    """And the work goes on."""
    world.settings(permission={"act": "ask"})
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c")),
        Step(Say("ok"), expect=answered("c", "use the other file")),
        presence=Attached(),
    ) as (hf, _):
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (first,) = await asked(hf, session)
        await hf.sessions.reply(session, first.id, "reject", message="use the other file")
        await hf.sessions.wait(session)


async def test_a_child_is_never_allowed_what_its_parent_is_not(world: World) -> None:
    """Whatever its own rules say."""
    world.settings(permission={"act": "allow"})
    deed = Deed()
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c")), Step(Say("ok"), expect=answered("c", "The rules deny act"))
    ) as (hf, _):
        hf.tools.register(deed.tool)
        parent = await world.session(hf, permission=[Rule(permission="act", pattern="x*", action="deny")])
        child = await world.session(
            hf, parent=parent, permission=[Rule(permission="act", pattern="*", action="allow")]
        )
        await hf.sessions.process(child, "go")

    assert deed.done == []


async def test_a_person_who_is_silent_is_not_waited_for_for_ever(world: World) -> None:
    """The session parks; the answer wakes it, after a restart too, and the call is then run."""
    world.settings(permission={"act": "ask"})
    deed = Deed()
    async with world.open(Step(Call("act", {"what": "x"}, id="c")), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        _impatient(hf)
        await hf.sessions.process(session, "go")
        (first,) = await asked(hf, session)
        assert not (await hf.store.session(session)).busy
        page = await hf.sessions.messages(session)
        assert outcomes(page.messages)[0][0] == "running"
    async with world.open(Step(Say("ok"), expect=answered("c", "did x")), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        await hf.sessions.reply(session, first.id, "once")
        await hf.sessions.wait(session)

    assert deed.done == ["x"]


def _impatient(hf: Holdfast) -> None:
    """Wait for a person for a moment only."""
    from msgspec.structs import force_setattr, replace

    engine = inside.engine(hf)
    force_setattr(engine, "limits", replace(engine.limits, answer_wait_ms=20))


async def test_a_program_answers_in_the_place_of_a_person(world: World) -> None:
    """It sees the question, and its answer is a record like any other; None leaves it to others."""
    world.settings(permission={"act": "ask"})
    deed, seen = Deed(), list[str]()

    async def decide(request: PermissionRequest) -> PermissionAnswer | None:
        seen.append(request.patterns[0])
        if request.patterns == ["y"]:
            await deed.begun.wait()  # A no covers all that wait: the yes goes first.
        return PermissionAnswer(reply="once" if request.patterns == ["x"] else "reject", message="not that")

    async with world.open(
        Step(Call("act", {"what": "x"}, id="c1"), Call("act", {"what": "y"}, id="c2")),
        Step(Say("ok"), expect=answered("c2", "not that")),
        on_ask=decide,
    ) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        records = [each.value() for each in await hf.store.select("request", session=session)]

    assert (deed.done, sorted(seen)) == (["x"], ["x", "y"])
    assert {each.answer.reply for each in records} == {"once", "reject"}


async def test_a_directory_has_tools_of_its_own(world: World) -> None:
    """Over those of the application; elsewhere they are not known."""
    world.settings(permission={"act": "allow"})
    here, elsewhere = Deed(ask=False), Deed(ask=False)
    async with world.open(Step(Call("act", {"what": "x"})), Step(Say("ok"))) as (hf, _):
        hf.tools.register(elsewhere.tool)
        hf.tools_at(world.project).register(here.tool)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")

    assert (here.done, elsewhere.done) == (["x"], [])


@pytest.mark.ci
async def test_two_answers_at_once_are_both_heard(world: World) -> None:
    """One of them may find that what it covers has changed; it is given all the same."""
    world.settings(permission={"act": "ask"})
    for _ in range(5):
        deed = Deed()
        async with world.open(
            Step(Call("act", {"what": "x"}, id="c1"), Call("act", {"what": "y"}, id="c2")),
            presence=Attached(),
        ) as (hf, _):
            hf.tools.register(deed.tool)
            session = await world.session(hf)
            await hf.sessions.prompt(session, "go")
            questions = await asked(hf, session, 2)
            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    for question in questions:
                        group.start_soon(_no, hf, session, question.id)
                await hf.sessions.wait(session)
        assert deed.done == []


async def _no(hf: Holdfast, session: str, id: str) -> None:
    with contextlib.suppress(Conflict):  # The other one's no covered it.
        await hf.sessions.reply(session, id, "reject")


async def test_a_silent_program_and_a_person_share_one_wait(world: World) -> None:
    """Whoever answers first is heard at once: nobody waits until the other's time is over."""
    world.settings(permission={"act": "ask"})
    told = anyio.Event()

    async def silent(_: PermissionRequest) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            told.set()

    deed = Deed()
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c")),
        Step(Say("ok"), expect=answered("c", "did x")),
        on_ask=silent,
    ) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (question,) = await asked(hf, session)
        await hf.sessions.reply(session, question.id, "once")
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
            await told.wait()
    assert deed.done == ["x"]


async def test_a_program_that_cannot_be_stopped_is_waited_for_as_long_as_a_person(world: World) -> None:
    """It reads from a terminal, say: the session parks without it, and the question stays."""
    world.settings(permission={"act": "ask"})
    typed = threading.Event()

    async def reads(_: PermissionRequest) -> PermissionAnswer:
        await anyio.to_thread.run_sync(typed.wait)
        return PermissionAnswer(reply="once")

    async with world.open(Step(Call("act", {"what": "x"}, id="c")), on_ask=reads) as (hf, _):
        hf.tools.register(Deed().tool)
        engine = inside.engine(hf)
        force_setattr(engine, "limits", replace(engine.limits, answer_wait_ms=20))
        session = await world.session(hf)
        try:
            with anyio.fail_after(60):
                await hf.sessions.process(session, "go")
            (question,) = await hf.sessions.requests(session)
            assert not (await hf.store.session(session)).busy
        finally:
            typed.set()
        assert isinstance(question, PermissionRequest)
        assert question.permission == "act"


async def test_what_a_program_answers_while_it_is_left_is_heard(world: World) -> None:
    """The time is over just as it answers: the answer is a record, so the call goes on with it."""
    world.settings(permission={"act": "ask"})

    async def late(_: PermissionRequest) -> PermissionAnswer:
        with contextlib.suppress(asyncio.CancelledError):
            await anyio.sleep_forever()
        return PermissionAnswer(reply="once")

    deed = Deed()
    async with world.open(
        Step(Call("act", {"what": "x"}, id="c")),
        Step(Say("ok"), expect=answered("c", "did x")),
        on_ask=late,
    ) as (hf, _):
        hf.tools.register(deed.tool)
        engine = inside.engine(hf)
        force_setattr(engine, "limits", replace(engine.limits, answer_wait_ms=20))
        with anyio.fail_after(60):
            await hf.sessions.process(await world.session(hf), "go")
    assert deed.done == ["x"]


@pytest.mark.ci
async def test_an_interrupt_lets_the_program_that_decides_end_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes its dialogue, say: nothing of it is left when the session is idle."""
    world.settings(permission={"act": "ask"})
    steps: list[str] = []
    began = anyio.Event()

    async def decide(_: PermissionRequest) -> None:
        try:
            began.set()
            await anyio.sleep_forever()
        finally:
            await asyncio.sleep(0.2)
            steps.append("closed")

    monkeypatch.setattr("holdfast.runtime.calls.permission_ask.LEAVE_S", 60)
    monkeypatch.setattr("holdfast.runtime.calls.tool_calls.PATIENCE_S", 60)
    async with world.open(Step(Call("act", {"what": "x"}, id="c")), on_ask=decide) as (hf, _):
        hf.tools.register(Deed().tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await began.wait()
            await hf.sessions.interrupt(session)
            await hf.sessions.wait(session)
        steps.append("idle")
    assert steps == ["closed", "idle"]


async def test_of_the_systems_temporary_folder_only_a_private_one_is_open(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A neighbour's file there is not read where nobody can be asked; one in the folder of this user's agents
    is. That folder is there, with mode 0700, when the first call asks.
    """
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("TMPDIR", str(shared))
    (shared / "other.txt").write_text("topsecret")
    private = shared / f"holdfast-{os.geteuid()}"
    private.mkdir(mode=0o700)
    (private / "own.txt").write_text("my own")
    reads = [
        Step(Call("read", {"filePath": str(path)}, id=path.name))
        for path in (shared / "other.txt", private / "own.txt")
    ]
    async with world.open(*reads, Step(Say("done"))) as (hf, script):
        await hf.sessions.process(await world.session(hf), "read them")
    sent = str(script.requests[-1].messages)
    assert ("topsecret" in sent, "my own" in sent) == (False, True)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
