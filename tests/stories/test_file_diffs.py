"""What the work changed in files: per prompt, for the session, and between snapshots."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.app import Holdfast
from holdfast.errors import InvalidInput, NotFound, Refused, StoreBusy
from holdfast.location.shadow import budget
from holdfast.location.shadow.repository import Shadow
from holdfast.runtime.side_calls import session_diffs
from holdfast.schema.message import UserMessage
from holdfast.schema.session_lists import FileDiff
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.stories import inside
from tests.stories.tools import command
from tests.stories.world import World
from tests.until import until

WORK = "open('b', 'w').write('two\\n'); open('bin', 'wb').write(b'\\0\\1')"
LARGE = "open('large', 'wb').truncate(3 << 20)"


def steps(*more: Step) -> tuple[Step, ...]:
    write = Call("write", {"filePath": "a", "content": "one\n"})
    return (Step(write), Step(Call("act", {})), Step(Say("ok")), *more)


async def prompts_of(hf: Holdfast, session: str) -> list[UserMessage]:
    found = (await hf.sessions.messages(session)).messages
    return [each.info for each in found if isinstance(each.info, UserMessage)]


def told(diffs: Any) -> list[tuple[str | None, str | None, float, float]]:
    return [(each.file, each.status, each.additions, each.deletions) for each in diffs]


@pytest.mark.ci
async def test_what_each_prompt_and_the_session_changed(world: World) -> None:
    """From what a file held before the prompt, or the session, to what it held after; in the session's record
    the sum. What the user changed in between is not in it.
    """
    world.settings(snapshot=True)
    again = (Step(Call("bash", {"command": "printf 'more\\n' >> b; rm a"})), Step(Say("ok")))
    world.settings(snapshot=True, permission={"bash": "allow"})
    async with world.open(*steps(*again)) as (hf, _):
        hf.tools.register(command(WORK))
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (world.project / "mine").write_text("the user\n")
        await hf.sessions.process(session, "again")

        async def is_done() -> bool:
            found = await hf.sessions.get(session)
            return found.summary is not None and found.summary.files == 2

        await until(is_done)
        first, second = await prompts_of(hf, session)
        summary = (await hf.sessions.get(session)).summary
        diffs = await hf.sessions.diffs(session)

    assert first.summary is not None
    assert second.summary is not None
    assert told(first.summary.diffs) == [
        ("a", "added", 1, 0),
        ("b", "added", 1, 0),
        ("bin", "added", 0, 0),
    ]
    assert told(second.summary.diffs) == [("a", "deleted", 0, 1), ("b", "modified", 1, 0)]
    assert told(diffs) == [("b", "added", 2, 0), ("bin", "added", 0, 0)]
    assert summary is not None
    assert (summary.additions, summary.deletions, summary.files, summary.diffs) == (2, 0, 2, None)
    assert first.summary.diffs[1] == FileDiff(
        file="b",
        patch=first.summary.diffs[1].patch,
        additions=1,
        deletions=0,
        status="added",
    )
    assert (first.summary.diffs[1].patch or "").endswith("--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+two\n")
    assert first.summary.diffs[2].patch == ""


@pytest.mark.ci
async def test_a_crash_before_the_diffs_is_caught_up_with(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next process that runs the session, whether that changes files or not."""
    world.settings(snapshot=True)

    async def never(*_: Any) -> None:
        return

    with monkeypatch.context() as patched:
        patched.setattr(session_diffs, "write", never)
        async with world.open(*steps()) as (hf, _):
            hf.tools.register(command(WORK))
            session = await world.session(hf)
            await hf.sessions.process(session, "go")
            assert [each.summary for each in await prompts_of(hf, session)] == [None]
    async with world.open(Step(Say("ok"))) as (hf, _):
        hf.tools.register(command(WORK))
        await hf.sessions.process(session, "and?")
    async with world.open() as (hf, _):
        first, second = await prompts_of(hf, session)
        count = (await hf.sessions.get(session)).summary

    assert first.summary is not None
    assert [each.file for each in first.summary.diffs] == ["a", "b", "bin"]
    assert (second.summary, count and count.files) == (None, 3)


async def test_diffs_that_could_not_be_written_are_due_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was away for longer than a process waits: after the next run, though that changes no file."""
    world.settings(snapshot=True)
    tried = anyio.Event()

    async def away(*_: Any) -> None:
        tried.set()
        raise StoreBusy("away")

    async with world.open(*steps(Step(Say("fine")))) as (hf, _):
        hf.tools.register(command(WORK))
        session = await world.session(hf)
        with monkeypatch.context() as patched:
            patched.setattr(session_diffs, "_write", away)
            await hf.sessions.process(session, "go")
            with anyio.fail_after(60):
                await tried.wait()
        assert [each.summary for each in await prompts_of(hf, session)] == [None]
        await hf.sessions.process(session, "and?")
        await until(lambda: hf.sessions.diffs(session))
        first, second = await prompts_of(hf, session)

    assert [each.file for each in first.summary.diffs] == ["a", "b", "bin"]
    assert second.summary is None


@pytest.mark.ci
async def test_snapshots_and_what_differs_between_them(world: World) -> None:
    """Those around steps and one that the caller takes; diffs between them, to the files as they are now, and
    of the agent alone.
    """
    world.settings(snapshot=True)
    async with world.open(*steps()) as (hf, _):
        hf.tools.register(command(WORK))
        session = await world.session(hf)
        with pytest.raises(NotFound, match="has no message yet"):
            await hf.sessions.snapshot(session)
        await hf.sessions.process(session, "go")
        (world.project / "mine").write_text("the user\n")
        taken = await hf.sessions.snapshot(session)
        listed = await hf.sessions.snapshots(session)
        (world.project / "mine").write_text("later\n")
        (world.project / "a").rename(world.project / "c")

        async def files(*trees: str, **more: Any) -> list[tuple[str | None, str | None, float, float]]:
            return told((await hf.sessions.diff(session, *trees, **more)).diffs)

        answers = [each.info for each in (await hf.sessions.messages(session)).messages]
        assert [each.message_id for each in listed] == [
            answers[1].id,
            answers[1].id,
            answers[2].id,
            answers[3].id,
        ]
        assert [[Path(path).name for path in each.files] for each in listed] == [[], ["a"], ["b", "bin"], []]
        assert listed[-1].id == taken.id
        assert list((await hf.sessions.state(session)).snapshots) == listed
        assert await files(listed[0].id, listed[1].id) == [("a", "added", 1, 0)]
        assert await files(listed[2].id, taken.id) == [("mine", "added", 1, 0)]
        assert await files(taken.id) == [("c", "modified", 0, 0), ("mine", "modified", 1, 1)]
        assert await files() == await files(message=answers[0].id) == await files(message=answers[2].id)
        assert [name for name, *_ in await files()] == ["a", "b", "bin"]
        for wrong in ("0" * 40, "--output=x", "HEAD"):
            with pytest.raises(NotFound, match="is not kept"):
                await hf.sessions.diff(session, wrong)
        with pytest.raises(InvalidInput, match="needs a start"):
            await hf.sessions.diff(session, None, taken.id)
        with pytest.raises(NotFound):
            await hf.sessions.snapshot(session, "msg_none")


async def test_without_snapshots_there_are_no_diffs(world: World) -> None:
    """The caller is told which setting it is."""
    async with world.open() as (hf, _):
        session = await world.session(hf)
        with pytest.raises(Refused, match="`snapshot: false`"):
            await hf.sessions.diff(session)


async def test_a_session_without_changes_is_not_written(world: World) -> None:
    """Nothing is stored of diffs for one that changed nothing."""
    world.settings(snapshot=True)
    async with world.open(Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        await inside.coordinator(hf).close()
        found = await hf.sessions.get(session)
        assert (found.summary, list(await hf.sessions.diffs(session))) == (None, [])


async def test_the_budget_is_looked_at_after_the_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run that changed files may have made it too much."""
    world.settings(snapshot=True, snapshot_budget=3)
    asked: list[int] = []

    def enforce(_: Shadow, most: int) -> bool:
        asked.append(most)
        return False

    monkeypatch.setattr(budget, "enforce", enforce)
    async with world.open(*steps()) as (hf, _):
        hf.tools.register(command(WORK))
        await hf.sessions.process(await world.session(hf), "go")

    assert asked == [3 << 20]


async def test_what_was_not_kept_is_named(world: World) -> None:
    """That it was changed is all that a diff can tell; the records, which have numbers, leave it out."""
    world.settings(snapshot=True)
    async with world.open(Step(Call("act", {})), Step(Say("ok"))) as (hf, _):
        hf.tools.register(command(LARGE))
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        found = await hf.sessions.diff(session)
    async with world.open() as (hf, _):
        stored = await hf.sessions.diffs(session)

    assert told(found.diffs) == [("large", "modified", 0, 0)]
    assert list(stored) == []


@pytest.mark.ci
async def test_diffs_go_with_the_messages_that_are_shown(world: World) -> None:
    """What is reverted is in no diff of the session any more; unreverted, it is again."""
    world.settings(snapshot=True)
    write = Call("write", {"filePath": "c", "content": "three\n"})
    async with world.open(*steps(Step(write), Step(Say("ok")))) as (hf, _):
        hf.tools.register(command(WORK))
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        await hf.sessions.process(session, "again")
        found = []
        for change in (hf.sessions.revert, hf.sessions.unrevert):
            await change(session)
            summary = (await hf.sessions.get(session)).summary
            assert summary is not None
            found.append(([each.file for each in await hf.sessions.diffs(session)], summary.files))

    assert found == [(["a", "b", "bin"], 3), (["a", "b", "bin", "c"], 4)]
