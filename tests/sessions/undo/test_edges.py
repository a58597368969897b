"""What undo looks at before it writes, and what it keeps while it does: a fact each."""

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.errors import Conflict, NotFound, Refused, UndoConflict
from holdfast.location import write_path
from holdfast.location.shadow import place
from holdfast.location.shadow.objects import content_id
from holdfast.location.shadow.repository import Shadow
from holdfast.location.write_path import New
from holdfast.runtime.undo import commit
from holdfast.schema.file_part import FilePart
from holdfast.schema.ids import MessageID, SessionID
from holdfast.schema.message import MessageWithParts, UserMessage
from holdfast.schema.model import ModelRef
from holdfast.schema.part import CompactionPart, Part, TextPart
from holdfast.schema.stored import Mark
from holdfast.schema.times import Created
from holdfast.sessions.access import put_session, require_session
from holdfast.sessions.undo import contents as contents_module
from holdfast.sessions.undo import present, stage
from holdfast.sessions.undo import revert as revert_module
from holdfast.sessions.undo.contents import contents
from holdfast.sessions.undo.plan import Held
from holdfast.sessions.undo.point import last_prompt
from holdfast.sessions.undo.resting import expected
from holdfast.sessions.undo.worktree import Worktree
from holdfast.store import reverted
from holdfast.store.batch import Batch, Put
from holdfast.store.host import this_process
from holdfast.store.record import StoredRecord
from holdfast.store.reverted import Hidden
from tests.sessions.undo_world import LINES, UndoWorld, configure, edited

pytestmark = pytest.mark.needs("git")
S = SessionID("ses_1")


class Killed(BaseException):
    """The process ends here."""


async def cut_off(world: UndoWorld, patch: pytest.MonkeyPatch, name: str) -> None:
    """Revert, in a process that dies when it is about to write a file."""
    plain = write_path.put

    def dies(new: New) -> None:
        if new.real.name == name:
            raise Killed
        plain(new)

    with patch.context() as patched:
        patched.setattr(write_path, "put", dies)
        with pytest.raises(Killed):
            await world.revert()


async def test_a_conflict_with_the_way_back_counts_for_a_moved_point(world: UndoWorld) -> None:
    """Also where the file holds what the new point asks for: it was the user who wrote that."""
    world.put("a", b"0\n")
    first = await world.prompt()
    await world.agent({"a": b"1\n"})
    await world.prompt()
    await world.agent({"a": b"2\n"})
    await world.revert()
    world.put("a", b"0\n")
    with pytest.raises(UndoConflict, match="a line 1: the same lines"):
        await world.revert(first)
    assert world.files() == {"a": b"0\n"}


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (edited((3, "user\n")), edited((3, "user\n"))),
        (edited((3, "agent\n"), (9, "user\n")), edited((9, "user\n"))),
    ],
    ids=["same lines", "other lines"],
)
async def test_what_the_user_writes_into_a_revert_that_was_cut_off(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch, written: bytes, left: bytes
) -> None:
    """It stays where it would be in conflict, and is merged where not; what the merge replaces is kept."""
    configure(world.top.parent / "home")
    for name in "ab":
        world.put(name, LINES)
    await world.prompt()
    await world.agent({name: edited((3, "agent\n")) for name in "ab"})
    await cut_off(world, monkeypatch, "b")
    world.put("b", written)
    await world.hf.sessions.prompt(world.session, "on", no_reply=True)

    assert world.files() == {"a": LINES, "b": left}
    kept = contents(await world.shadow(), [content_id(written)])
    assert list(kept.values()) == ([] if left == written else [written])


async def test_what_putting_files_back_after_a_commit_replaces_is_kept(world: UndoWorld) -> None:
    """By its content: the user may want it again."""
    configure(world.top.parent / "home")
    world.put("a", LINES)
    await world.prompt()
    await world.agent({"a": edited((3, "agent\n"))})
    await world.revert()
    await world.hf.sessions.prompt(world.session, "on", no_reply=True)
    user = edited((9, "user\n"))
    world.put("a", user)
    assert await world.unrevert(committed=True) == {"a": "merged"}
    id = content_id(user)
    assert contents(await world.shadow(), [id]) == {id: user}


def test_a_file_that_is_too_large_is_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read; nor is one that grows meanwhile, beyond that."""
    monkeypatch.setattr(present, "BYTES_MAX", 3)
    real = Path(os.path.realpath(tmp_path)) / "a"
    real.write_bytes(b"123")
    assert present.held(real).data == b"123"
    real.write_bytes(b"1234")
    assert present.held(real) == Held(obstacle="it is larger than 0 MiB, too large to compare")
    monkeypatch.setattr(present, "_CHUNK", 2)
    with real.open("r+b") as grows:
        grows.truncate(100)
        assert len(present._read(grows.fileno())) == 4


@pytest.mark.parametrize("larger", ["files", "kept", "neither"])
async def test_what_is_held_in_memory_is_bounded(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch, larger: str
) -> None:
    """A revert of more is refused and changes nothing; bringing files back is not."""
    small, large = b"1234567890\n", b"a long line\n" * 30
    names = [f"{number}" for number in range(4)]
    for name in names:
        world.put(name, small + name.encode() + (large if larger == "kept" else b""))
    await world.prompt()
    left = large if larger == "files" else b"agent\n"
    await world.agent({name: left + name.encode() for name in names})
    before = world.files()
    monkeypatch.setattr(contents_module, "BATCH_BYTES", 500)
    with monkeypatch.context() as patched:
        patched.setattr(revert_module, "BYTES_MAX", 1_000)
        if larger == "neither":
            assert await world.revert() == dict.fromkeys(names, "restored")
        else:
            with pytest.raises(Refused, match="too much to compare at once; take back less"):
                await world.revert()
            assert world.files() == before
    if larger != "neither":
        await world.revert()
    await world.unrevert()
    assert world.files() == before


@pytest.mark.parametrize("what", ["a runner", "a prompt", "nothing"])
async def test_a_session_that_works_again_is_not_written_over(world: UndoWorld, what: str) -> None:
    """Neither is noticed in the session's own record."""
    await world.prompt()
    record = await require_session(world.hf.sessions.access, world.session)
    store = world.hf.store
    if what == "a runner":
        await store.register(this_process(world.hf.host, id="runner", placements=(world.hf.host.id,)))
        await store.claim(world.session, "runner")
    elif what == "a prompt":
        waits = Put(world.session, "prompt", "msg_waits", b"{}", None, mark=Mark.OPEN)
        await store.commit(Batch((waits,)))
    batch = Batch((put_session(record.value()),), expected(record))
    if what == "nothing":
        await store.commit(batch)
    else:
        with pytest.raises(Conflict):
            await store.commit(batch)


async def test_what_is_kept_for_a_session_that_is_gone_counts_within_the_budget(world: UndoWorld) -> None:
    """With the next undo in the worktree; what a staged revert keeps does not."""
    await world.prompt()
    await world.agent({"a": b"1\n"})
    await world.revert()
    shadow = await world.shadow()
    shadow.keep_contents(place.staged_of("ses_gone"), [b"x\n"])
    await stage.release_committed(world.hf.sessions.access, Worktree(world.top, shadow))
    folders = {each.folder for each in shadow.kept()}
    assert {place.folder_of("ses_gone"), place.staged_of(world.session)} <= folders
    assert place.staged_of("ses_gone") not in folders


async def test_paths_that_are_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each for a reason."""
    top = Path(os.path.realpath(tmp_path))
    monkeypatch.setenv("HOME", str(top / "home"))
    worktree = Worktree(top, Shadow(top / "shadow", top))
    closed = {
        "a": "it is no path that could be written",
        f"{top}/../b": "it is no path that could be written",
        "/b": "it lies outside of the project",
        str(top): "it lies outside of the project",
        f"{top}/x/.GIT/config": "it belongs to git",
        f"{top}/home/.local/share/holdfast/store.db": "it belongs to Holdfast itself",
    }
    assert worktree.closed([*closed, f"{top}/a"]) == closed


async def test_a_session_of_another_machine(world: UndoWorld) -> None:
    """Its files are not here."""
    await world.prompt()
    session = await world.hf.sessions.get(world.session)
    await world.hf.store.commit(Batch((put_session(replace(session, placement="elsewhere")),)))
    with pytest.raises(Refused, match="works at placement elsewhere; undo it there"):
        await world.revert()


async def test_a_program_that_comes_back_from_a_snapshot_can_be_run(world: UndoWorld) -> None:
    """A tree knows that of modes."""
    world.put("run", b"#!/bin/sh\n")
    (world.top / "run").chmod(0o755)
    tree = (await world.shadow()).take("sessions/x")
    await world.prompt()
    await world.agent({"run": None})
    assert await world.revert(snapshot=tree.id) == {"run": "restored"}
    assert os.access(world.top / "run", os.X_OK)


async def test_the_last_committed_reverts_are_remembered(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many, and no more."""
    configure(world.top.parent / "home")
    monkeypatch.setattr(commit, "KEPT_MAX", 2)
    asked = []
    for number in range(3):
        asked.append(await world.prompt())
        await world.agent({f"{number}": b"1\n"})
        await world.revert()
        await world.hf.sessions.prompt(world.session, "on", no_reply=True)
    found = (await world.hf.sessions.get(world.session)).reverted
    assert found is not None
    assert [each.message_id for each in found] == asked[1:]


@pytest.mark.parametrize(
    ("parent", "hidden"), [("msg_1", Hidden(8, 3, 5)), ("msg_2", Hidden(7)), (None, Hidden(7))]
)
def test_a_part_of_another_message_hides_the_whole_message(parent: str | None, hidden: Hidden) -> None:
    """It counts for nothing."""
    head: dict[str, Any] = {"session": "ses_1", "seq": 9, "mark": Mark.NONE, "data": b"{}"}
    message = StoredRecord(kind="message", id="msg_1", parent=None, position=3, place=7, **head)
    part = StoredRecord(kind="part", id="prt_1", parent=parent, position=5, place=5, **head)
    assert reverted.hidden(message, None if parent is None else part) == hidden


def test_a_prompt_of_our_own_is_not_the_last_one() -> None:
    """What continues the work after a compaction was not said by the user; a file alone was."""
    model = ModelRef(provider_id="p", model_id="m")

    def prompt(id: str, *parts: Part) -> MessageWithParts:
        time = Created(created=1)
        info = UserMessage(id=MessageID(id), session_id=S, time=time, agent="a", model=model)
        return MessageWithParts(info, parts)

    head: Any = {"id": "prt_1", "session_id": S, "message_id": "msg_1"}
    file = FilePart(**head, mime="text/plain", url="data:,x")
    history = [
        prompt("msg_text", TextPart(**head, text="go")),
        prompt("msg_file", file),
        prompt("msg_compaction", CompactionPart(**head, auto=True)),
        prompt("msg_on", TextPart(**head, text="Continue.", synthetic=True)),
    ]
    assert last_prompt(history) == "msg_file"
    assert last_prompt(history[:1]) == "msg_text"
    with pytest.raises(NotFound, match="no prompt that could be taken back"):
        last_prompt(history[2:])
