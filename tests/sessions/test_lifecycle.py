"""A session's life: created, found, changed, hidden, moved, removed."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.app import Holdfast
from holdfast.errors import InvalidInput, NotFound, Refused
from holdfast.schema import usage
from holdfast.schema.model import SessionModel
from holdfast.schema.permission import Rule
from holdfast.schema.session import Session, SessionTime
from holdfast.schema.session_lists import Todo
from holdfast.store.batch import Fence
from holdfast.store.host import this_process
from holdfast.store.query import SearchQuery, SessionQuery
from holdfast.testing.clock import FakeClock
from holdfast.version import __version__
from tests.sessions.filling import ask


async def test_a_directory_that_is_none_is_refused(hf: Holdfast, tmp_path: Path) -> None:
    """A path that is no folder, or no path at all, is named in a clear error; nothing is written."""
    (tmp_path / "file").write_text("x")
    for bad in (tmp_path / "missing", tmp_path / "file", "a\0b"):
        with pytest.raises(InvalidInput):
            await hf.sessions.create(directory=bad)

    assert (await hf.sessions.list()).sessions == ()


async def test_an_unknown_parent_and_a_bad_id_are_refused(hf: Holdfast, folder: Path) -> None:
    """A child needs its parent, and a given id its prefix; an id is given out once."""
    with pytest.raises(NotFound):
        await hf.sessions.create(directory=folder, parent="ses_none")
    with pytest.raises(InvalidInput, match="does not start with"):
        await hf.sessions.create(directory=folder, id="msg_1")
    for bad in ("ses_../x", "ses_a/b", "ses_*", "ses_a\0", "ses_" + "x" * 10_000):
        with pytest.raises(InvalidInput):
            await hf.sessions.create(directory=folder, id=bad)


async def test_a_new_session_has_everything_a_client_expects(
    hf: Holdfast, folder: Path, clock: FakeClock
) -> None:
    """Default title, slug, project, path, version, zero totals and both times."""
    clock.set_wall(1_780_000_000_123)
    made = await hf.sessions.create(directory=folder)

    assert made == Session(
        id=made.id,
        slug=made.slug,
        project_id=made.project_id,
        directory=str(folder),
        path="",
        cost=0,
        tokens=usage.ZERO,
        title="New session - 2026-05-28T20:26:40.123Z",
        version=__version__,
        time=SessionTime(created=1_780_000_000_123, updated=1_780_000_000_123),
        placement=hf.host.id,
    )
    assert made.slug.count("-") == 1
    assert await hf.sessions.get(made.id) == made


async def test_what_is_given_is_kept(hf: Holdfast, folder: Path) -> None:
    """Title, rules, agent, model and metadata come back as they were given; a child says so in its title."""
    rules = [Rule(permission="bash", pattern="*", action="ask")]
    parent = await hf.sessions.create(
        directory=folder,
        title=" Fix  the\nbug ",
        permission=rules,
        agent="plan",
        model=SessionModel(id="m", provider_id="p", variant="high"),
        metadata={"ticket": 7, "nested": {"a": [1, None]}},
    )
    child = await hf.sessions.create(parent=parent.id)

    assert parent.title == "Fix the bug"
    assert (parent.permission, parent.agent) == (rules, "plan")
    assert parent.model == SessionModel(id="m", provider_id="p", variant="high")
    assert parent.metadata == {"ticket": 7, "nested": {"a": [1, None]}}
    assert (child.parent_id, child.directory) == (parent.id, str(folder))
    assert child.title.startswith("Child session - ")
    assert await hf.sessions.get(parent.id) == parent


async def test_archived_sessions_are_hidden_and_can_be_restored(hf: Holdfast, folder: Path) -> None:
    """Archiving and renaming are no activity: the time of the last update stays."""
    made = await hf.sessions.create(directory=folder)
    archived = await hf.sessions.archive(made.id)
    assert archived.time.updated == made.time.updated
    assert (await hf.sessions.list()).sessions == ()
    assert (await hf.sessions.list(SessionQuery(archived=None))).sessions == (archived,)
    assert await hf.sessions.get(made.id) == archived

    renamed = await hf.sessions.rename(made.id, "Better")
    assert (renamed.title, renamed.time.updated) == ("Better", made.time.updated)
    restored = await hf.sessions.restore(made.id)
    assert restored.time.archived is None
    assert (await hf.sessions.list()).sessions == (restored,)


async def test_touching_moves_a_session_to_the_top(hf: Holdfast, folder: Path, clock: FakeClock) -> None:
    """Lists go by the last update."""
    first = await hf.sessions.create(directory=folder)
    clock.advance(10)
    second = await hf.sessions.create(directory=folder)
    assert [each.id for each in (await hf.sessions.list()).sessions] == [second.id, first.id]
    clock.advance(10)
    await hf.sessions.touch(first.id)
    assert [each.id for each in (await hf.sessions.list()).sessions] == [first.id, second.id]


async def test_no_update_is_lost_among_many_at_once(hf: Holdfast, folder: Path) -> None:
    """Twenty editors at once: each sees what the others made."""
    made = await hf.sessions.create(directory=folder, metadata={"count": 0})

    async def count_up() -> None:
        for _ in range(3):
            await hf.sessions.update(made.id, _counted)

    await asyncio.gather(*(count_up() for _ in range(20)))
    assert (await hf.sessions.get(made.id)).metadata == {"count": 60}


def _counted(session: Session) -> Session:
    assert session.metadata is not None
    return replace(session, metadata={"count": session.metadata["count"] + 1})


async def test_an_editor_cannot_change_who_a_session_is(hf: Holdfast, folder: Path) -> None:
    """The id and the parent stay."""
    made = await hf.sessions.create(directory=folder)
    with pytest.raises(InvalidInput):
        await hf.sessions.update(made.id, lambda old: replace(old, parent_id=old.id))
    with pytest.raises(InvalidInput):
        await hf.sessions.rename(made.id, "   ")
    assert await hf.sessions.get(made.id) == made


async def test_children_direct_and_all(hf: Holdfast, folder: Path) -> None:
    """Descendants come generation by generation."""
    root = await hf.sessions.create(directory=folder)
    child = await hf.sessions.create(parent=root.id)
    grandchild = await hf.sessions.create(parent=child.id)

    assert [each.id for each in await hf.sessions.children(root.id)] == [child.id]
    assert [each.id for each in await hf.sessions.children(root.id, deep=True)] == [child.id, grandchild.id]
    with pytest.raises(NotFound):
        await hf.sessions.children("ses_none")


async def test_removing_takes_everything_below_along(hf: Holdfast, folder: Path) -> None:
    """Children, messages, parts, todos and search rows are gone; a second removal finds nothing."""
    root = await hf.sessions.create(directory=folder)
    child = await hf.sessions.create(parent=root.id)
    await ask(hf, child.id, "an unmistakable word")
    await hf.sessions.set_todos(root.id, [Todo(content="x", status="pending", priority="low")])
    assert len(await hf.sessions.search(SearchQuery("unmistakable"))) == 1

    assert await hf.sessions.remove(root.id) == [child.id, root.id]
    assert (await hf.sessions.list(SessionQuery(archived=None))).sessions == ()
    assert list(await hf.sessions.search(SearchQuery("unmistakable"))) == []
    with pytest.raises(NotFound):
        await hf.sessions.remove(root.id)
    with pytest.raises(NotFound):
        await hf.sessions.todos(root.id)


async def test_a_running_session_is_not_removed_moved_or_edited(
    hf: Holdfast, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Busy is a claim by a living owner; a parent is busy through its child. Removal asks it to stop."""
    monkeypatch.setattr("holdfast.runtime.engine.interrupt_requests.INTERRUPT_S", 0.05)
    root = await hf.sessions.create(directory=folder)
    child = await hf.sessions.create(parent=root.id)
    asked = await ask(hf, child.id, "hello")
    await hf.store.register(this_process(hf.host, id="runner", placements=(hf.host.id,)))
    fence = await hf.store.claim(child.id, "runner")
    assert isinstance(fence, Fence)

    for removed in (root.id, child.id):
        with pytest.raises(Refused, match="did not stop"):
            await hf.sessions.remove(removed)
    for refused in (
        hf.sessions.move(child.id, str(tmp_path)),
        hf.sessions.remove_message(child.id, asked.id),
        hf.sessions.update_message(child.id, asked.id, lambda old: replace(old, agent="plan")),
    ):
        with pytest.raises(Refused, match="busy"):
            await refused

    await hf.store.release(fence)
    await hf.sessions.remove_message(child.id, asked.id)
    assert await hf.sessions.remove(root.id) == [child.id, root.id]


async def test_moving_a_session_changes_its_place_and_project(
    hf: Holdfast, folder: Path, tmp_path: Path, clock: FakeClock
) -> None:
    """Directory, path and project follow; moving to where it is changes nothing."""
    other = tmp_path / "other"
    other.mkdir()
    made = await hf.sessions.create(directory=folder)
    await ask(hf, made.id, "keeps its words")
    clock.advance(5)
    moved = await hf.sessions.move(made.id, str(other))

    assert moved == replace(
        made,
        directory=str(other),
        project_id=moved.project_id,
        time=replace(made.time, updated=made.time.updated + 5),
    )
    assert moved.project_id != made.project_id
    assert await hf.sessions.move(made.id, str(other)) == moved
    assert [
        each.id for each in (await hf.sessions.list(SessionQuery(project=moved.project_id))).sessions
    ] == [made.id]
    assert (await hf.sessions.list(SessionQuery(project=made.project_id))).sessions == ()
    assert len((await hf.sessions.messages(made.id)).messages) == 1
    with pytest.raises(InvalidInput):
        await hf.sessions.move(made.id, str(tmp_path / "nowhere"))


async def test_a_person_names_a_session_by_id_beginning_or_slug(hf: Holdfast, folder: Path) -> None:
    """A beginning must be unique, and long enough to mean something."""
    one = await hf.sessions.create(directory=folder, id="ses_aaaa1111")
    two = await hf.sessions.create(directory=folder, id="ses_aaaa2222")
    await hf.sessions.update(two.id, lambda old: replace(old, slug="only-one"))

    assert (await hf.sessions.named("ses_aaaa1111")).id == one.id
    assert (await hf.sessions.named("ses_aaaa1")).id == one.id
    assert (await hf.sessions.named("aaaa2")).id == two.id
    assert (await hf.sessions.named("only-one")).id == two.id
    with pytest.raises(InvalidInput, match="more than one"):
        await hf.sessions.named("ses_aaaa")
    for unknown in ("ses_zzzz", "a", "", "../x", "ses_\0"):
        with pytest.raises(NotFound):
            await hf.sessions.named(unknown)
