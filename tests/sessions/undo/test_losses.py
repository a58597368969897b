"""What undo must not lose, whatever happens around it."""

import errno
import stat
from collections.abc import Sequence
from pathlib import Path

import anyio.from_thread
import pytest

from holdfast.errors import ContextError, NotFound, Refused
from holdfast.location import write_path
from holdfast.location.shadow import objects, place
from holdfast.location.shadow.objects import content_id
from holdfast.location.shadow.repository import Shadow
from holdfast.runtime.undo.commit import KEPT_MS
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.part import ToolPart
from holdfast.schema.stored import BACKGROUND
from holdfast.schema.tool_state import Completed, ToolCompleted
from holdfast.sessions.undo import ledger, write_files
from holdfast.sessions.undo.plan import Planned
from holdfast.sessions.undo.unrevert import GONE
from holdfast.store.host import this_process
from tests.sessions.undo_world import LINES, UndoWorld, configure, edited

pytestmark = pytest.mark.needs("git")


async def test_a_snapshot_says_nothing_of_what_it_left_out(world: UndoWorld) -> None:
    """A file that the project ignores, and that was there before the agent changed it, is named and stays."""
    world.put(".gitignore", b".env\n")
    world.put(".env", b"user\n")
    await world.prompt()
    tree = (await world.shadow()).take(place.folder_of(world.session)).id
    await world.agent({".env": b"agent\n", "a": b"1\n"})

    assert await world.revert(snapshot=tree) == {".env": "not covered", "a": "deleted"}
    assert world.files() == {".gitignore": b".env\n", ".env": b"agent\n"}


async def test_a_command_that_was_left_running_is_named(world: UndoWorld) -> None:
    """No step observes what it does later."""
    await world.prompt()
    said = await world.agent({})
    now_ms = world.clock.now_ms()
    state = ToolCompleted(
        input={}, output="", title="", metadata={BACKGROUND: {}}, time=Completed(start=now_ms, end=now_ms)
    )
    part = ToolPart(
        id=PartID(await world.hf.sessions.new_id(world.session, "prt")),
        session_id=SessionID(world.session),
        message_id=MessageID(said),
        call_id="c2",
        tool="bash",
        state=state,
    )
    await world.hf.sessions.add_part(part)

    undo = await world.hf.sessions.revert(world.session, preview=True)
    assert undo.notes[0] == f"message {said} left a command running: what it changed later is not known"


async def test_what_was_not_recorded_is_told(world: UndoWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step may have changed more files than are recorded of it."""
    monkeypatch.setattr(ledger, "OBSERVED_MAX", 2)
    await world.prompt()
    said = await world.agent({"a": b"1\n", "b": b"1\n"}, observed=True)

    undo = await world.hf.sessions.revert(world.session, preview=True)
    (note,) = undo.notes
    assert note == (
        f"message {said} changed more files than the 2 that are recorded of a step: the others are not taken "
        "back"
    )


async def test_a_session_that_changes_while_files_come_back(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `unrevert` answers is what it did; the committed revert is over, and the other change stays."""
    configure(world.top.parent / "home")
    await world.prompt()
    await world.agent({"a": b"1\n"})
    await world.revert()
    await world.hf.sessions.prompt(world.session, "on", no_reply=True)
    plain = write_files.write_all

    def write_all(files: Sequence[Planned]) -> None:
        plain(files)
        anyio.from_thread.run(world.hf.sessions.rename, world.session, "Other")

    monkeypatch.setattr(write_files, "write_all", write_all)
    assert await world.unrevert(committed=True) == {"a": "restored"}
    after = await world.hf.sessions.get(world.session)
    assert (after.title, after.reverted, world.get("a")) == ("Other", None, b"1\n")


async def test_a_repository_that_cannot_be_read_loses_nothing(world: UndoWorld) -> None:
    """Undo does nothing, and says so; once the repository is mended it works."""
    await world.prompt()
    await world.agent({"a": b"1\n"})
    await world.revert()
    config = (await world.shadow()).git_dir / "config"
    was = config.read_bytes()
    config.write_bytes(b"[damaged")

    with pytest.raises(ContextError, match="could not read what is kept"):
        await world.unrevert()

    config.write_bytes(was)
    assert await world.unrevert() == {"a": "restored"}
    assert world.files() == {"a": b"1\n"}


async def test_what_did_not_come_back_stays_kept(world: UndoWorld) -> None:
    """The messages come back; what the files held is kept on, within the budget."""
    world.put("a", LINES)
    await world.prompt()
    await world.agent({"a": edited((3, "agent\n"))})
    both = edited((3, "agent\n"), (10, "user\n"))
    world.put("a", both)
    await world.revert()
    shadow, revert = await world.shadow(), (await world.hf.sessions.get(world.session)).revert
    assert revert is not None
    assert revert.kept is not None
    (shadow.git_dir / "objects" / revert.kept[:2] / revert.kept[2:]).unlink()

    undo = await world.hf.sessions.unrevert(world.session)
    assert (undo.files, undo.notes, len(await world.said())) == ((), (GONE,), 2)
    assert world.get("a") == edited((10, "user\n"))
    assert (place.folder_of(world.session), content_id(both)) in {(e.folder, e.id) for e in shadow.kept()}


@pytest.mark.parametrize("how", ["revert", "unrevert"])
async def test_a_full_disk_changes_nothing(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """What a file holds is kept before it is written; once there is room, it works."""
    world.put("a", LINES)
    await world.prompt()
    await world.agent({"a": edited((3, "agent\n"))})
    world.put("a", edited((3, "agent\n"), (10, "user\n")))
    if how == "unrevert":
        await world.revert()
        world.put("a", edited((10, "user\n"), (15, "more\n")))
    before = world.files()
    work = {"revert": world.revert, "unrevert": world.unrevert}[how]

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(objects, "_place", full)
        with pytest.raises(ContextError, match=r"nothing was changed: .*: No space left on device"):
            await work()
    assert world.files() == before
    assert await work() == {"a": "merged"}


async def test_a_disk_with_room_for_one_file_after_the_other(
    world: UndoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are written together lie beside the old ones first; where that is too much, each by itself.
    Where not even that can be done, nothing is changed.
    """
    names = "abc"
    await world.prompt()
    await world.agent({name: name.encode() for name in names})
    plain, room, beside = write_path._fill, 1, set[str]()

    def fill(folder: int, name: str, data: bytes, like: write_path.Kept | None) -> None:
        beside.intersection_update(path.name for path in world.top.iterdir())
        if len(beside) >= room:
            raise OSError(errno.ENOSPC, "No space left on device")
        beside.add(name)
        plain(folder, name, data, like)

    await world.revert()
    with monkeypatch.context() as patched:
        patched.setattr(write_path, "_fill", fill)
        room = 0
        with pytest.raises(ContextError, match="No space left on device; make room"):
            await world.unrevert()
        assert world.files() == {}
        room = 1
        assert await world.unrevert() == dict.fromkeys(names, "restored")
    assert world.files() == {name: name.encode() for name in names}


@pytest.mark.ci
async def test_many_contents_that_cannot_be_kept(world: UndoWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is changed, and that is said."""
    files = {f"{number}": b"agent %d\n" % number for number in range(20)}
    await world.prompt()
    await world.agent(files)

    def fails(self: Shadow, contents: Sequence[bytes]) -> list[str]:
        raise ContextError("git index-pack failed")

    with monkeypatch.context() as patched:
        patched.setattr(Shadow, "_pack", fails)
        with pytest.raises(ContextError, match=r"nothing was changed: .*: git index-pack failed"):
            await world.revert()
    assert world.files() == files
    await world.revert()
    assert world.files() == {}
    await world.unrevert()
    assert world.files() == files


async def test_folders_are_private(world: UndoWorld) -> None:
    """All that are made on the way to the shadow repository."""
    await world.prompt()
    await world.agent({"a": b"1\n"})
    await world.revert()

    ours = (await world.shadow()).git_dir
    made = (ours, ours.parent, ours.parent.parent, ours.with_name(f"{ours.name}.undo-lock"))
    assert [stat.S_IMODE(each.stat().st_mode) for each in made] == [0o700, 0o700, 0o700, 0o600]


async def test_a_committed_revert_is_kept_for_a_week(world: UndoWorld) -> None:
    """Then its files can no longer be put back. Once committed, what it kept counts within the budget."""
    configure(world.top.parent / "home")
    await world.prompt()
    await world.agent({"a": b"1\n"})
    await world.revert()
    await world.hf.sessions.prompt(world.session, "on", no_reply=True)
    world.clock.advance(KEPT_MS - 1)
    assert (await world.unrevert(committed=True, preview=True)) == {"a": "restored"}
    assert {each.folder for each in (await world.shadow()).kept()} == {place.folder_of(world.session)}
    world.clock.advance(1)
    with pytest.raises(NotFound, match="within the last 7 days"):
        await world.unrevert(committed=True)


async def test_the_last_prompt_is_one_that_asked_for_an_answer(world: UndoWorld) -> None:
    """Not a note, which takes no answer."""
    configure(world.top.parent / "home")
    asked = await world.prompt()
    await world.agent({"a": b"1\n"})
    await world.hf.sessions.prompt(world.session, "a note", no_reply=True)

    await world.revert()

    revert = (await world.hf.sessions.get(world.session)).revert
    assert revert is not None
    assert (revert.message_id, world.files()) == (asked, {})


async def test_a_session_below_that_works_stops_it(world: UndoWorld) -> None:
    """It may be changing the same files."""
    child = await world.new_session(world.session)
    await world.prompt()
    await world.agent({"a": b"1\n"})
    store = world.hf.store
    await store.register(this_process(world.hf.host, id="runner", placements=(world.hf.host.id,)))
    await store.claim(child, "runner")

    with pytest.raises(Refused, match=f"session {child} is busy"):
        await world.revert()
    assert world.files() == {"a": b"1\n"}
