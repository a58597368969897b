"""Reverts and their undoing, over real files and the real git."""

import shutil
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.errors import InvalidInput, NotFound, Refused, StoreBusy, StoreError, UndoConflict
from holdfast.file_lock import FileLock
from holdfast.location import write_path
from holdfast.location.shadow import place
from holdfast.location.write_path import New
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.schema.message import AssistantTime
from holdfast.sessions.undo import unrevert, worktree
from holdfast.store.batch import Batch, Receipt
from tests.sessions.filling import answer, ask
from tests.sessions.undo_world import LINES, UndoWorld, configure, edited

pytestmark = pytest.mark.needs("git")

DAY_MS = 86_400_000


async def set_time(world: UndoWorld, message: str, time: AssistantTime) -> None:
    await world.hf.sessions.update_message(world.session, message, lambda each: replace(each, time=time))


@pytest.mark.ci
async def test_only_what_the_agent_changed_after_the_point(world: UndoWorld) -> None:
    """Earlier changes of the agent stay, and so do files of the user's."""
    world.put("mine", b"mine\n")
    await world.prompt()
    await world.agent({"a": b"early\n"})
    point = await world.prompt()
    await world.agent({"a": b"late\n", "b/c": b"new\n"})
    await world.agent({"a": b"later\n", "d": b"1"})
    world.put("other", b"other\n")

    assert await world.revert(point) == {"a": "restored", "b/c": "deleted", "d": "deleted"}
    assert world.files() == {"a": b"early\n", "mine": b"mine\n", "other": b"other\n"}
    assert await world.unrevert() == {"a": "restored", "b/c": "restored", "d": "restored"}
    assert world.files() == {
        "a": b"later\n", "b/c": b"new\n", "d": b"1", "mine": b"mine\n", "other": b"other\n",
    }  # fmt: skip


async def test_what_the_user_changed_since_is_merged_both_ways(world: UndoWorld) -> None:
    """Into the file that is put back, and into the one that `unrevert` brings back."""
    world.put("a", LINES)
    await world.prompt()
    await world.agent({"a": edited((3, "agent\n"))})
    world.put("a", edited((3, "agent\n"), (10, "user\n")))

    assert await world.revert() == {"a": "merged"}
    assert world.get("a") == edited((10, "user\n"))
    world.put("a", edited((10, "user\n"), (18, "again\n")))
    assert await world.unrevert() == {"a": "merged"}
    assert world.get("a") == edited((3, "agent\n"), (10, "user\n"), (18, "again\n"))


async def test_a_conflict_stops_all_of_it(world: UndoWorld) -> None:
    """No file and no record changes; the path and the lines are named."""
    world.put("a", LINES)
    world.put("b", b"b\n")
    await world.prompt()
    await world.agent({"a": edited((3, "agent\n")), "b": b"agent\n", "made": b"made\n"})
    world.put("a", edited((3, "user\n")))
    world.put("made", b"mine\n")
    files, session = world.files(), await world.hf.sessions.get(world.session)

    with pytest.raises(UndoConflict) as raised:
        await world.revert()
    assert raised.value.files == (
        ("a", "the same lines have been changed since", ((3, 3),)),
        ("made", "the agent made it, and it has been changed since", ()),
    )
    assert str(raised.value) == (
        "nothing was changed: a line 3: the same lines have been changed since; "
        "made: the agent made it, and it has been changed since"
    )
    assert (world.files(), await world.hf.sessions.get(world.session)) == (files, session)


async def test_a_preview_changes_nothing(world: UndoWorld) -> None:
    """And tells of each file what would become of it, with its diff; also of conflicts."""
    world.put("a", b"one\n")
    await world.prompt()
    await world.agent({"a": b"two\n", "n": b"new\n", "x": b"x\n"})
    await world.agent({"o": b"seen\n"}, observed=True)
    world.put("x", b"mine\n")
    files, session = world.files(), await world.hf.sessions.get(world.session)

    undo = await world.hf.sessions.revert(world.session, preview=True)
    assert [(e.path, e.outcome, e.status, e.additions, e.deletions, e.observed) for e in undo.files] == [
        ("a", "restored", "modified", 1, 1, False),
        ("n", "deleted", "deleted", 0, 1, False),
        ("o", "deleted", "deleted", 0, 1, True),
        ("x", "conflict", None, 0, 0, False),
    ]
    assert undo.files[0].patch == "--- a\n+++ a\n@@ -1 +1 @@\n-two\n+one"
    assert (undo.done, undo.session) == (False, session)
    assert (world.files(), await world.hf.sessions.get(world.session)) == (files, session)


@pytest.mark.ci
async def test_the_point_moves(world: UndoWorld) -> None:
    """Back and forth: each time as if it were the first; what `unrevert` brings back stays the same."""
    world.put("a", b"0\n")
    points = []
    for number in (b"1\n", b"2\n", b"3\n"):
        points.append(await world.prompt())
        await world.agent({"a": number, f"f{number[0] - 48}": number})
    whole = world.files()

    assert await world.revert(points[1]) == {"a": "restored", "f2": "deleted", "f3": "deleted"}
    assert world.files() == {"a": b"1\n", "f1": b"1\n"}
    assert await world.revert() == {"a": "restored", "f1": "deleted", "f2": "unchanged", "f3": "unchanged"}
    assert world.files() == {"a": b"0\n"}
    assert await world.revert(points[2]) == {
        "a": "restored", "f1": "restored", "f2": "restored", "f3": "unchanged",
    }  # fmt: skip
    assert world.files() == {"a": b"2\n", "f1": b"1\n", "f2": b"2\n"}
    assert await world.unrevert() == {"a": "restored", "f3": "restored"}
    assert world.files() == whole
    assert not (await world.shadow()).git_dir.joinpath("refs", place.staged_of(world.session)).exists()


@pytest.mark.ci
async def test_what_the_user_wrote_while_it_was_staged_survives_a_moved_point(world: UndoWorld) -> None:
    """It is merged into each state."""
    world.put("a", LINES)
    points = []
    for number in (2, 6):
        points.append(await world.prompt())
        was = world.get("a")
        assert was is not None
        await world.agent({"a": edited((number, "agent\n"), lines=was)})
    await world.revert(points[1])
    world.put("a", edited((2, "agent\n"), (15, "user\n")))
    await world.revert(points[0])
    assert world.get("a") == edited((15, "user\n"))
    await world.unrevert()
    assert world.get("a") == edited((2, "agent\n"), (6, "agent\n"), (15, "user\n"))


async def test_what_is_not_covered_is_named_and_stays(world: UndoWorld, tmp_path: Path) -> None:
    """What could not be kept, and what lies outside of the project or belongs to git."""
    outside = tmp_path / "outside"
    outside.write_text("x")
    await world.prompt()
    await world.agent({"big": b"1"}, covered=False, before=None, after=None)
    await world.agent({"out": b"1"}, path=str(outside))
    await world.agent({".git/config": b"1"})
    await world.agent({"odd": b"1"}, path=str(world.top / ".." / "outside"))

    undo = await world.hf.sessions.revert(world.session)
    assert {(each.path, each.outcome, each.reason) for each in undo.files} == {
        ("big", "not covered", "what it held before could not be kept"),
        (str(outside), "not covered", "it lies outside of the project"),
        (".git/config", "not covered", "it belongs to git"),
        ("../outside", "not covered", "it is no path that could be written"),
    }
    assert (outside.read_text(), world.get("big"), world.get(".git/config")) == ("x", b"1", b"1")


@pytest.mark.ci
async def test_children(world: UndoWorld) -> None:
    """What sessions below did after the point is taken back too; what they did before it stays."""
    child = await world.new_session(world.session)
    deeper = await world.new_session(child)
    await world.prompt()
    await world.prompt(session=child)
    await world.agent({"a": b"1\n"})
    await world.agent({"a": b"2\n", "early": b"1\n"}, session=child)
    point = await world.prompt()
    await world.agent({"a": b"3\n"})
    await world.prompt(session=deeper)
    await world.agent({"a": b"4\n", "deep": b"1\n"}, session=deeper)
    await world.agent({"a": b"5\n"}, session=child)
    await world.agent({"a": b"6\n"})

    assert await world.revert(point) == {"a": "restored", "deep": "deleted"}
    assert world.files() == {"a": b"2\n", "early": b"1\n"}


@pytest.mark.ci
async def test_a_part(world: UndoWorld) -> None:
    """What its message did before it stays; a part before which nothing was said stands for the prompt."""
    prompt = await world.prompt()
    message = await world.agent({"a": b"1\n"})
    part = await world.add_text(message, "and then")
    later = await world.agent({"b": b"1\n"})
    first = (await world.hf.sessions.message(world.session, message)).parts[0].id

    assert await world.revert(message, part=part) == {"b": "deleted"}
    assert await world.said() == [prompt, message]
    shown = (await world.hf.sessions.messages(world.session)).messages[-1]
    assert part not in [each.id for each in shown.parts]
    fork = await world.hf.sessions.fork(world.session)
    copied = (await world.hf.sessions.messages(fork.id)).messages[-1]
    assert [type(each) for each in copied.parts] == [type(each) for each in shown.parts]
    revert = (await world.hf.sessions.get(world.session)).revert
    assert revert is not None
    assert (revert.message_id, revert.part_id) == (message, part)

    assert await world.revert(message, part=first) == {"a": "deleted", "b": "unchanged"}
    assert await world.said() == []
    await world.unrevert()
    assert await world.revert(later) == {"a": "deleted", "b": "deleted"}
    assert await world.said() == []


@pytest.mark.ci
@pytest.mark.parametrize("committed", [False, True])
async def test_a_conflict_stops_the_way_back_too(
    world: UndoWorld, tmp_path: Path, *, committed: bool
) -> None:
    """Of a staged revert and of a committed one: nothing changes, and it can be tried again."""
    configure(tmp_path / "home")
    world.put("a", LINES)
    world.put("b", b"1\n")
    await world.prompt()
    await world.agent({"a": edited((3, "agent\n")), "b": b"2\n"})
    await world.revert()
    if committed:
        await world.hf.sessions.prompt(world.session, "on", no_reply=True)
    world.put("a", edited((3, "user\n")))
    files, session = world.files(), await world.hf.sessions.get(world.session)

    with pytest.raises(UndoConflict, match="a line 3: the same lines"):
        await world.unrevert(committed=committed)
    assert (world.files(), await world.hf.sessions.get(world.session)) == (files, session)
    assert await world.unrevert(committed=committed, preview=True) == {"a": "conflict", "b": "restored"}
    world.put("a", edited((9, "user\n")))
    assert await world.unrevert(committed=committed) == {"a": "merged", "b": "restored"}
    assert world.files() == {"a": edited((3, "agent\n"), (9, "user\n")), "b": b"2\n"}


@pytest.mark.ci
async def test_a_committed_revert_is_kept_for_a_week(world: UndoWorld, tmp_path: Path) -> None:
    """Within the budget, from the next undo in the worktree on; the last of several comes back first."""
    configure(tmp_path / "home")
    world.put("a", b"0\n")
    for number in (b"1\n", b"2\n"):
        await world.prompt()
        await world.agent({"a": number})
        await world.revert()
        await world.hf.sessions.prompt(world.session, "on", no_reply=True)
        world.put("a", number)
    refs = (await world.shadow()).git_dir / "refs"
    staged, kept = refs / place.staged_of(world.session), refs / place.folder_of(world.session)
    names = {each.name for each in staged.iterdir()}
    world.put("a", b"1\n")
    assert await world.unrevert(committed=True) == {"a": "restored"}
    assert (world.get("a"), staged.exists(), names - {each.name for each in kept.iterdir()}) == (
        b"2\n", False, set(),
    )  # fmt: skip
    world.put("a", b"0\n")
    world.clock.advance(7 * DAY_MS - 1_000)
    assert await world.unrevert(committed=True, preview=True) == {"a": "restored"}
    world.clock.advance(1_000)
    with pytest.raises(NotFound, match="within the last 7 days"):
        await world.unrevert(committed=True)
    await world.prompt()
    await world.revert()
    await world.hf.sessions.prompt(world.session, "on", no_reply=True)
    assert (await world.hf.sessions.get(world.session)).reverted is None


async def test_what_a_killed_process_left_is_cleared(world: UndoWorld) -> None:
    """The folder of its merges, which holds contents of files."""
    await world.prompt()
    await world.agent({"a": b"1\n"})
    left = (await world.shadow()).git_dir / "merge-left"
    left.mkdir()
    (left / "ours").write_text("secret")
    await world.revert()
    assert not left.exists()


async def test_a_history_that_is_kept_in_memory(world: UndoWorld) -> None:
    """It is what the store shows, also where nothing but the revert has changed."""
    await world.prompt()
    await world.agent({"a": b"1\n"})
    history = SessionHistory(world.hf.sessions.access.store, world.session)
    counts = [len(await history.read())]
    await world.revert()
    counts.append(len(await history.read()))
    await world.unrevert()
    counts.append(len(await history.read()))
    assert counts == [2, 0, 2]


async def test_refusals(world: UndoWorld) -> None:
    """Of what is not there, what is unfinished, and of edits while a revert is staged."""
    with pytest.raises(NotFound, match="has no prompt"):
        await world.revert()
    prompt = await world.prompt()
    with pytest.raises(NotFound, match="message nope does not exist"):
        await world.revert("nope")
    with pytest.raises(NotFound, match="part nope does not exist in message"):
        await world.revert(prompt, part="nope")
    with pytest.raises(InvalidInput, match="together with its message"):
        await world.revert(part="nope")
    with pytest.raises(NotFound, match="snapshot nope is not kept"):
        await world.revert(prompt, snapshot="nope")
    with pytest.raises(NotFound, match="no revert of session"):
        await world.unrevert(committed=True)
    assert await world.unrevert() == {}
    open_ = await answer(world.hf, world.session, prompt, "…")
    closed = open_.time
    await set_time(world, open_.id, replace(closed, completed=None))
    with pytest.raises(Refused, match="was left unfinished"):
        await world.revert()
    await set_time(world, open_.id, closed)
    await world.revert()
    with pytest.raises(Refused, match="has a staged revert"):
        await ask(world.hf, world.session, "more")
    with pytest.raises(Refused, match="has a staged revert; undo that one first"):
        await world.unrevert(committed=True)
    with pytest.raises(Refused, match="has a staged revert"):
        await world.hf.sessions.move(world.session, str(world.top.parent))


async def test_modes_and_the_files_beside(world: UndoWorld) -> None:
    """A file that comes back has its mode; the git index and HEAD are not moved; ours are private."""
    world.git("init", "-q", ".")
    world.put("run", b"#!/bin/sh\n")
    (world.top / "run").chmod(0o750)
    world.git("add", "-A")
    world.git("commit", "-qm", "first")
    session = await world.new_session()
    world.session = session
    await world.prompt()
    await world.agent({"run": None})
    index = (world.top / ".git" / "index").read_bytes(), world.git("rev-parse", "HEAD")

    await world.revert()
    assert stat.S_IMODE((world.top / "run").stat().st_mode) == 0o750
    assert ((world.top / ".git" / "index").read_bytes(), world.git("rev-parse", "HEAD")) == index
    ours = (await world.shadow()).git_dir
    assert {stat.S_IMODE(path.lstat().st_mode) for path in (ours, *ours.rglob("*"))} == {0o600, 0o700}


@pytest.mark.ci
async def test_a_file_that_changes_meanwhile_puts_everything_back(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the plan and the write: all others hold again what they held, and there is a new plan, which
    merges what the user wrote, or names the conflict.
    """
    for name in "abc":
        world.put(name, LINES)
    await world.prompt()
    await world.agent({name: edited((3, "agent\n")) for name in "abc"})
    plain, users = write_path.put, [edited((3, "agent\n"), (9, "user\n")), edited((3, "user\n"))]
    seen = []

    def change_c(new: New) -> None:
        seen.append(new.real.name)
        if new.real.name == "c" and users:
            world.put("c", users.pop(0))
        plain(new)

    monkeypatch.setattr(write_path, "put", change_c)
    with pytest.raises(UndoConflict, match="c line 3: the same lines"):
        await world.revert()
    assert "".join(seen) == "abcba" * 2
    assert world.files() == {name: edited((3, "agent\n")) for name in "ab"} | {"c": edited((3, "user\n"))}
    assert (await world.hf.sessions.get(world.session)).revert is None
    world.put("c", edited((3, "agent\n"), (9, "user\n")))
    assert await world.revert() == {"a": "restored", "b": "restored", "c": "merged"}
    assert world.files() == {"a": LINES, "b": LINES, "c": edited((9, "user\n"))}


async def test_towards_a_snapshot(world: UndoWorld) -> None:
    """The files that the agent changed after the point get what the tree holds; others stay."""
    world.put("a", b"old\n")
    world.put("mine", b"old\n")
    tree = (await world.shadow()).take("sessions/x")
    world.put("a", b"newer\n")
    world.put("mine", b"newer\n")
    point = await world.prompt()
    await world.agent({"a": b"agent\n", "b": b"agent\n"})

    assert await world.revert(point, snapshot=tree.id) == {"a": "restored", "b": "deleted"}
    assert world.files() == {"a": b"old\n", "mine": b"newer\n"}
    await world.unrevert()
    assert world.files() == {"a": b"agent\n", "b": b"agent\n", "mine": b"newer\n"}


async def test_what_is_no_longer_kept(world: UndoWorld) -> None:
    """The messages come back all the same, the files stay as they are, and it is said so."""
    world.put("a", b"1\n")
    await world.prompt()
    await world.agent({"a": b"2\n"})
    await world.revert()
    shutil.rmtree((await world.shadow()).git_dir)

    with pytest.raises(Refused, match="its point cannot be moved"):
        await world.revert((await world.said(reverted=True))[0])
    undo = await world.hf.sessions.unrevert(world.session)
    assert (undo.files, undo.notes) == ((), (unrevert.GONE,))
    assert (world.files(), undo.session.revert, len(await world.said())) == ({"a": b"1\n"}, None, 2)


async def test_one_process_at_a_time(world: UndoWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one waits for it, and no longer than it says."""
    monkeypatch.setattr(worktree, "LOCK_S", 0.0)
    await world.prompt()
    await world.revert()
    git_dir = (await world.shadow()).git_dir
    lock = FileLock(git_dir.with_name(f"{git_dir.name}.undo-lock"))
    lock.acquire(wait_s=1)
    try:
        with pytest.raises(Refused, match="another process undoes changes"):
            await world.unrevert()
    finally:
        lock.close()
    await world.unrevert()


@pytest.mark.parametrize("last", [edited((3, "agent\n")), None], ids=["removed the line", "removed the file"])
async def test_a_line_of_the_user_s_that_the_agent_removed_comes_back(
    world: UndoWorld, last: bytes | None
) -> None:
    """Also where the file holds again what the agent had left before the user wrote it, or is gone."""
    world.put("a", LINES)
    first = await world.prompt()
    await world.agent({"a": edited((3, "agent\n"))})
    world.put("a", edited((3, "agent\n"), (9, "user\n")))
    await world.agent({"a": last})

    assert await world.revert(first) == {"a": "merged"}
    assert world.files() == {"a": edited((9, "user\n"))}


async def two_prompts(world: UndoWorld) -> None:
    """Each of two prompts changed a file."""
    world.put("a", b"one\n")
    for data in (b"two\n", b"three\n"):
        await world.prompt()
        await world.agent({"a": data})


async def test_a_revert_waits_for_a_store_that_is_away(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are written by then: they want their record."""
    monkeypatch.setattr("holdfast.runtime.engine.patience.PAUSE_S", 0.001)
    await two_prompts(world)
    commit, asked = world.hf.store.commit, list[int]()

    async def often_away(batch: Batch) -> Receipt:
        asked.append(1)
        if len(asked) % 2:
            raise StoreBusy("away")
        return await commit(batch)

    monkeypatch.setattr(world.hf.store, "commit", often_away)
    await world.revert()
    assert world.get("a") == b"two\n"
    await world.unrevert()
    assert world.get("a") == b"three\n"


@pytest.mark.ci
async def test_a_revert_that_is_asked_for_again_takes_back_no_more(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call was cut off between its files and its record. The third one goes further, as ever."""
    await two_prompts(world)
    commit, asked = world.hf.store.commit, list[int]()

    async def fails_at_the_second(batch: Batch) -> Receipt:
        asked.append(1)
        if len(asked) == 2:
            raise StoreError("the disk is full")
        return await commit(batch)

    monkeypatch.setattr(world.hf.store, "commit", fails_at_the_second)
    with pytest.raises(StoreError):
        await world.revert()
    assert world.get("a") == b"two\n"
    await world.revert()
    assert world.get("a") == b"two\n"
    await world.revert()
    assert world.get("a") == b"one\n"
