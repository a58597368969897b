"""The command line over a store with damaged records: the others are shown, the damaged ones are named."""

import secrets
import sqlite3
from pathlib import Path

import pytest

from holdfast.app import Holdfast
from tests.cli.conftest import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell over SQLite, which can be damaged by hand."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{tmp_path}/store.db")


def damage(shell: Shell, statement: str, *values: object) -> None:
    """Change the tables behind the store's back."""
    db = sqlite3.connect(shell.store.removeprefix("sqlite://"))
    with db:
        assert db.execute(statement, values).rowcount == 1
    db.close()


def child_of(shell: Shell, parent: str) -> str:
    """A session below another."""

    async def work(hf: Holdfast) -> str:
        return (await hf.sessions.create(parent=parent)).id

    return str(shell.make(work))


@pytest.mark.ci
@pytest.mark.parametrize("data", ["{", '{"title":1}', "", "[]", '{"title":"x"} ', b'{"title":"\xff"}'])
def test_one_damaged_session_hides_no_other(shell: Shell, data: object) -> None:
    """It is named beside the list; whatever is asked of it alone is one clear line; it can be erased."""
    sound, damaged = shell.conversation("Sound"), shell.conversation("Damaged")
    child = child_of(shell, sound)
    damage(shell, "UPDATE session SET data=? WHERE id=?", data, damaged)
    warning = f"session {damaged} cannot be read; run holdfast doctor\n"

    listed = shell("session", "list", "--format", "json")
    assert {each["id"] for each in listed.json()} == {sound, child}
    assert (listed.code, listed.err) == (0, warning)
    table = shell("session", "list", "--all")
    assert {line.split()[0] for line in table.out.splitlines()[1:]} == {sound, child}
    assert (table.code, table.err) == (0, warning)

    for command in (["show"], ["show", "--format", "json"], ["fork"], ["archive"], ["restore"], ["export"]):
        line = shell.fails("session", *command, damaged)
        assert f"session {damaged} cannot be read" in line, (command, line)
        assert "run `holdfast doctor`" in line
    assert shell("session", "show", sound).code == 0

    damage(shell, "UPDATE session SET data=? WHERE id=?", data, child)
    below = shell("session", "children", sound, "--format", "json")
    assert (below.json(), below.err) == ([], warning.replace(damaged, child))
    assert shell("session", "delete", damaged, "--yes", "--format", "json").json() == [damaged]


@pytest.mark.ci
@pytest.mark.parametrize("data", ["{", "[]", b'{"type":"text","text":"\xff"}'])
def test_a_damaged_part_is_named_and_nothing_half_is_printed(shell: Shell, data: object) -> None:
    """For people and for programs."""
    session = shell.conversation()
    part = shell("session", "show", session, "--format", "json").json()["messages"][0]["parts"][0]["id"]
    damage(shell, "UPDATE record SET data=? WHERE id=?", data, part)
    for form in ("table", "json"):
        assert f"part {part} of session {session} cannot be read" in shell.fails(
            "session", "show", session, "--format", form
        )


@pytest.mark.ci
def test_doctor_says_by_its_code_that_a_store_is_not_sound(shell: Shell, tmp_path: Path) -> None:
    """1 while something is wrong; --repair makes a backup, which still has it, and mends; then 0."""
    session = shell.conversation()
    part = shell("session", "show", session, "--format", "json").json()["messages"][0]["parts"][0]["id"]
    damage(shell, "UPDATE record SET data='{' WHERE id=?", part)

    looked = shell("doctor")
    assert looked.code == 1, looked
    assert part in looked.out
    assert "not sound; --repair mends what it can" in looked.out
    assert shell("doctor", "--format", "json").json()["clean"] is False
    assert not list(tmp_path.glob("*.backup"))

    mended = shell("doctor", "--repair", "--format", "json")
    assert [(each["mended"], each["given_up"]) for each in mended.json()["findings"]] == [(True, True)]
    assert (mended.code, mended.json()["clean"]) == (0, True)
    (backup,) = tmp_path.glob("*.backup")
    assert str(backup) == mended.json()["backup"]
    assert shell("--store", f"sqlite://{backup}", "doctor").code == 1
    assert shell("doctor").code == 0
    assert "it is fixed" in shell("session", "show", session).out


@pytest.mark.ci
def test_repair_without_a_backup_must_be_asked_for(shell: Shell, tmp_path: Path) -> None:
    """By a flag of that name, which means nothing alone."""
    shell.conversation()
    assert "--no-backup goes with --repair" in shell.fails("doctor", "--no-backup", code=2)
    both = ("doctor", "--repair", "--no-backup", "--backup", str(tmp_path / "x"))
    assert "in place of --backup" in shell.fails(*both, code=2)
    assert shell("doctor", "--repair", "--no-backup").code == 0
    assert not list(tmp_path.glob("*.backup"))


@pytest.mark.ci
def test_a_store_that_cannot_be_backed_up_is_not_repaired_in_passing(shell: Shell) -> None:
    """PostgreSQL: refused before anything is opened, and done when the person answers for the backup."""
    from tests.store.postgres.server import start

    shell.store = "postgresql://nobody@nowhere.invalid/none"
    for options in (["--repair"], ["--backup", "x"], ["--repair", "--backup", "x"]):
        assert "pg_dump, then give --repair --no-backup" in shell.fails("doctor", *options)
    shell.store = f"{start()}&schema=t_{secrets.token_hex(8)}"
    shell.conversation()
    told = shell("doctor", "--repair", "--no-backup", "--format", "json").json()
    assert (told["clean"], told["backup"]) == (True, None)


@pytest.mark.ci
def test_on_the_files_store_a_damaged_session_is_named_too(tmp_path: Path) -> None:
    """Its file is half written: the list says which session is missing from it."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    shell = Shell(tmp_path / "home", tmp_path / "project", f"file://{tmp_path}/tree")
    sound, damaged = shell.conversation("Sound"), shell.conversation("Damaged")
    child = child_of(shell, sound)
    (file,) = (tmp_path / "tree").glob(f"session/*/{damaged}.json")
    (below,) = (tmp_path / "tree").glob(f"session/*/{child}.json")
    file.write_bytes(file.read_bytes()[:20])
    below.write_bytes(b"")

    listed = shell("session", "list", "--format", "json")
    children = shell("session", "children", sound, "--format", "json")

    assert [each["id"] for each in listed.json()] == [sound]
    assert sorted(listed.err.splitlines()) == sorted(
        f"session {each} cannot be read; run holdfast doctor" for each in (damaged, child)
    )
    assert (children.json(), children.err) == (
        [],
        f"session {child} cannot be read; run holdfast doctor\n",
    )
