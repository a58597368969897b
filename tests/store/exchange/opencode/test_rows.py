"""Generation C: the database."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from holdfast.store.base import Store
from holdfast.store.batch import project_scope
from holdfast.store.exchange.opencode.find import find_opencode
from holdfast.store.exchange.portable.report import Counts
from tests.store.exchange.opencode.world import (
    CHILD,
    MADE_MS,
    PARENT,
    PROJECT,
    Db,
    brought,
    generation_b,
    held,
    msg,
    parts_of,
    prt,
    session_file,
    text,
    tokens,
    tree,
    user,
)


@pytest.fixture
def db(tmp_path: Path) -> Db:
    return Db(tmp_path / "data" / "opencode.db")


async def test_broken_rows_stay_behind_and_say_why(store: Store, db: Db) -> None:
    """Text that is no JSON, JSON that is no record, types nobody knows: skipped by row, never fatal."""
    db.session()
    db.exchange()
    db.message(6, "{not json")
    db.message(7, {"role": "tool"})
    db.message(8, [1])
    db.part(9, 1, {"type": "hologram"})
    db.part(10, 1, "[" * 100_000)
    db.part(11, 1, {"type": "tool", "tool": "bash", "state": {"status": "dreaming"}})
    db.part(12, 1, b"\xff\xfe")
    db.insert("session", id="bad id", project_id=PROJECT, slug="", directory="", title="",
              version="", time_created=1, time_updated=1)  # fmt: skip

    report = await brought(store, db.path)

    assert report.counts["message"] == Counts(new=2, skipped=3)
    assert report.counts["part"] == Counts(new=3, skipped=4)
    assert report.counts["session"] == Counts(new=1, skipped=1)
    why = {skip.what: skip.why for skip in report.skipped}
    assert "it is not JSON" in why[f"message {msg(6)} with 0 parts"]
    assert why[f"part {prt(9)}"] == "there is no part of the type 'hologram'"
    assert why[f"part {prt(10)}"] == "its JSON is nested too deeply"
    assert why[f"part {prt(11)}"] == "there is no tool call in the state 'dreaming'"
    assert all("opencode.db table " in skip.where for skip in report.skipped)
    assert all(skip.why for skip in report.skipped)


async def test_a_report_names_a_thousand_and_counts_the_rest(store: Store, db: Db) -> None:
    """A source in which everything is broken does not fill the memory."""
    db.session()
    db.message(1, user())
    with closing(sqlite3.connect(db.path)) as raw:
        rows = [(f"prt_{n}", msg(1), PARENT, 1, 1, '{"type":"x"}') for n in range(1_200)]
        raw.executemany("INSERT INTO part VALUES (?,?,?,?,?,?)", rows)
        raw.commit()

    report = await brought(store, db.path)

    assert report.counts["part"] == Counts(skipped=1_200)
    assert (len(report.skipped), report.skipped_beyond) == (1_000, 200)


async def test_a_session_comes_over_with_all_that_its_row_says(store: Store, db: Db) -> None:
    """Every column has its place in the session; the placement is this machine's."""
    db.session(
        path="src",
        share_url="https://example.invalid/s",
        cost=1.5,
        tokens_input=7,
        tokens_cache_read=9,
        summary_additions=1,
        summary_deletions=2,
        summary_files=3,
        metadata={"k": "v"},
        revert={"messageID": msg(1), "snapshot": "abc"},
        agent="plan",
        permission=[{"permission": "bash", "pattern": "*", "action": "deny"}],
        model={"id": "m", "providerID": "p", "variant": "default"},
        time_compacting=3,
        time_archived=4,
        workspace_id="wrk_1",
    )

    report = await brought(store, db.path)

    assert (await held(store))["session"] == {
        "id": PARENT,
        "slug": "brave-lagoon",
        "projectID": PROJECT,
        "workspaceID": "wrk_1",
        "directory": "/home/alice/demo",
        "path": "src",
        "title": "Mock",
        "version": "1.18.33",
        "summary": {"additions": 1, "deletions": 2, "files": 3},
        "cost": 1.5,
        "agent": "plan",
        "tokens": {"input": 7, "output": 0, "reasoning": 0, "cache": {"read": 9, "write": 0}},
        "model": {"id": "m", "providerID": "p", "variant": "default"},
        "metadata": {"k": "v"},
        "time": {"created": 1000, "updated": 2000, "compacting": 3, "archived": 4},
        "permission": [{"permission": "bash", "pattern": "*", "action": "deny"}],
        "revert": {"messageID": msg(1), "snapshot": "abc"},
        "placement": "hostA",
    }
    assert report.counts["share"] == Counts(skipped=1)
    assert report.skipped[0].why == "the secrets of shares stay behind"


async def test_order_is_by_time_and_id_and_not_by_row(store: Store, db: Db) -> None:
    """Messages by the time of their creation, then by id; parts by id."""
    db.session()
    db.message(9, user(9), created=5)
    db.message(2, user(2), created=7)
    db.message(1, user(1), created=7)
    db.part(8, 9, text("second"))
    db.part(3, 9, text("first"))

    await brought(store, db.path)

    made = await held(store)
    assert [message["info"]["id"] for message in made["messages"]] == [msg(9), msg(1), msg(2)]
    assert [part["text"] for part in parts_of(made)] == ["first", "second"]


async def test_parents_come_before_their_children(store: Store, db: Db) -> None:
    """Whatever the order of the rows; a parent that is gone moves to the metadata, and so does a circle's."""
    grandchild, lost, circle = (PARENT[:-1] + letter for letter in "XYZ")
    db.session(grandchild, parent_id=CHILD)
    db.session(CHILD, parent_id=PARENT)
    db.session(PARENT)
    db.session(lost, parent_id="ses_gone")
    db.session(circle, parent_id=circle)

    report = await brought(store, db.path)

    assert (await held(store, CHILD))["session"]["parentID"] == PARENT
    assert (await held(store, grandchild))["session"]["parentID"] == CHILD
    assert (await held(store, lost))["session"]["metadata"] == {"parent": {"sessionID": "ses_gone"}}
    assert "parentID" not in (await held(store, circle))["session"]
    assert len(report.notes) == 2


async def test_todos_projects_and_approvals_come_over(store: Store, db: Db) -> None:
    """Todos in their order, the project with its fields, and each "always" for the project's worktree."""
    db.session()
    for position, content in ((1, "b"), (0, "a")):
        times = {"time_created": 1, "time_updated": 1}
        row = {"session_id": PARENT, "content": content, "status": "pending", "priority": "low"}
        db.insert("todo", **row, position=position, **times)
    saved = {"project_id": PROJECT, "time_created": 5, "time_updated": 5}
    db.insert("permission", id="psv_1", action="bash", resource="git *", **saved)
    db.insert("permission", id="psv_2", action="bash", resource="*", **{**saved, "project_id": "gone"})

    report = await brought(store, db.path)
    again = await brought(store, db.path)

    assert [todo["content"] for todo in (await held(store))["todos"]] == ["a", "b"]
    scope = project_scope(PROJECT)
    project = await store.get(scope, "project", PROJECT)
    assert project is not None
    assert msgspec.json.decode(project.data) == {
        "worktree": "/home/alice/demo",
        "vcs": "git",
        "icon": {"color": "red"},
        "commands": {"start": "make"},
        "time": {"created": 5, "updated": 6},
        "sandboxes": ["/home/alice/other"],
    }
    (approval,) = await store.select("approval", session=scope)
    assert msgspec.json.decode(approval.data) == {
        "projectID": PROJECT,
        "worktree": "/home/alice/demo",
        "permission": "bash",
        "pattern": "git *",
        "time": {"created": 5},
    }
    assert report.counts["approval"] == Counts(new=1, skipped=1)
    assert again.counts["approval"] == Counts(unchanged=1, skipped=1)
    assert again.counts["project"] == Counts(unchanged=1)
    assert not again.changed


async def test_an_older_database_lacks_columns_and_tables(store: Store, db: Db) -> None:
    """What a version did not have yet counts as empty; totals are then the sum of the steps."""
    with closing(sqlite3.connect(db.path)) as raw:
        for column in ("cost", "tokens_input", "agent", "model", "path", "metadata"):
            raw.execute(f"ALTER TABLE session DROP COLUMN {column}")
        for table in ("todo", "session_message", "session_input", "permission", "session_share"):
            raw.execute(f"DROP TABLE {table}")
        row = (PARENT, PROJECT, "s", "/d", "T", "0.1", 1, 2)
        names = "id, project_id, slug, directory, title, version, time_created, time_updated"
        raw.execute(f"INSERT INTO session({names}) VALUES (?,?,?,?,?,?,?,?)", row)
        raw.commit()
    db.exchange()

    await brought(store, db.path)

    session = (await held(store))["session"]
    assert (session["cost"], session["tokens"]) == (0.25, tokens(1, 2))


async def test_the_tree_beside_a_database_gives_what_only_it_has(store: Store, db: Db) -> None:
    """Diffs of the database's sessions, and sessions written after it; one that it lacks was deleted."""
    deleted, later = (PARENT[:-1] + letter for letter in "XY")
    db.session()
    db.exchange()
    storage = generation_b(db.path.parent / "storage")
    late = {"created": MADE_MS + 1, "updated": MADE_MS + 1}
    tree(
        storage,
        {
            f"session/{PROJECT}/{deleted}.json": session_file(deleted),
            f"session/{PROJECT}/{later}.json": session_file(later, time=late),
            f"session_diff/{PARENT}.json": [
                {"file": "a", "before": "", "after": "x", "additions": 1, "deletions": 0}
            ],
            f"permission/{PROJECT}.json": [{"permission": "bash", "pattern": "*", "action": "allow"}],
        },
    )

    report = await brought(store, db.path.parent)

    assert set(report.sessions) == {PARENT, later}
    assert (await held(store))["diffs"] == [
        {"file": "a", "additions": 1, "deletions": 0, "before": "", "after": "x"}
    ]
    assert [skip.what for skip in report.skipped] == [f"session {deleted}"]
    assert "import the storage folder by itself" in report.skipped[0].why
    assert "approval" not in report.counts
    assert (await brought(store, storage)).counts["session"] == Counts(new=1, unchanged=2)


async def test_databases_of_other_channels_come_too(store: Store, db: Db) -> None:
    """`opencode.db` first, then `opencode-<channel>.db`; an empty file is none."""
    db.session()
    other = Db(db.path.parent / "opencode-dev.db")
    other.session(CHILD)
    (db.path.parent / "opencode-empty.db").touch()

    report = await brought(store, db.path.parent)

    assert report.sessions == (PARENT, CHILD)
    assert report.source.count("database ") == 2


async def test_progress_is_told(store: Store, db: Db) -> None:
    """Before each session: how many are done, of how many."""
    db.session()
    db.session(CHILD)
    told: list[tuple[int, int, str]] = []

    await brought(store, db.path, progress=lambda *step: told.append(step))

    assert told == [(0, 2, PARENT), (1, 2, CHILD)]


def test_the_default_place_is_opencodes(tmp_path: Path) -> None:
    """`XDG_DATA_HOME`, else the home; `OPENCODE_DB` names a file, below the data directory if relative."""
    home = {"HOME": "/home/alice"}

    assert find_opencode(home) == Path("/home/alice/.local/share/opencode")
    assert find_opencode({**home, "XDG_DATA_HOME": "/x"}) == Path("/x/opencode")
    assert find_opencode({**home, "OPENCODE_DB": "/y/z.db"}) == Path("/y/z.db")
    assert find_opencode({**home, "OPENCODE_DB": "z.db"}) == Path("/home/alice/.local/share/opencode/z.db")
    assert find_opencode({**home, "OPENCODE_DB": ":memory:"}) == find_opencode(home)
