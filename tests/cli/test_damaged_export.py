"""`session export` of what is damaged: always JSON, what is whole in it, the rest by name."""

import json
from pathlib import Path

import pytest

from holdfast.app import Holdfast
from tests.cli.conftest import Shell


@pytest.fixture(params=["sqlite", "file"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """A shell over each store that can be damaged by hand."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return Shell(tmp_path / "home", tmp_path / "project", f"{request.param}://{tmp_path}/store")


def damage(shell: Shell, place: str, data: str) -> None:
    """Other content for a record, which is named by its file in a tree, behind the store's back."""
    scheme, _, path = shell.store.partition("://")
    if scheme == "file":
        (Path(path) / f"{place}.json").write_text(data)
        return
    import sqlite3

    db = sqlite3.connect(path)
    with db:
        assert (
            db.execute("UPDATE record SET data=? WHERE id=?", (data, place.rpartition("/")[2])).rowcount >= 1
        )
    db.close()


@pytest.mark.ci
@pytest.mark.parametrize("data", ["{", ""])
def test_an_export_is_json_and_names_what_it_left_out(shell: Shell, tmp_path: Path, data: str) -> None:
    """Exit code 1; what is whole is there, and can be imported elsewhere. In OpenCode's format too."""
    session = shell.conversation()
    before = shell("session", "export", session).json()
    first, second = before["sessions"][0]["messages"]
    part = second["parts"][-1]["id"]
    damage(shell, f"part/{second['info']['id']}/{part}", data)

    piped = shell("session", "export", session)
    assert (piped.code, piped.err) == (
        1,
        f"part {part} of {session} cannot be read and was left out; run holdfast doctor\n",
    )
    second["parts"].pop()
    assert piped.json() == before
    foreign = shell("session", "export", session, "--opencode")
    assert (foreign.code, foreign.err) == (1, piped.err)
    assert [each["info"]["id"] for each in foreign.json()["messages"]] == [
        first["info"]["id"],
        second["info"]["id"],
    ]

    damage(shell, f"message/{session}/{first['info']['id']}", data)
    file = tmp_path / "out.json"
    written = shell("session", "export", session, "--output", str(file))
    lost = [f"message {first['info']['id']}", *(f"part {each['id']}" for each in first["parts"])]
    assert written.code == 1
    assert {line for line in written.err.splitlines() if "left out" in line} == {
        f"{each} of {session} cannot be read and was left out; run holdfast doctor"
        for each in (*lost, f"part {part}")
    }
    assert [each["info"]["id"] for each in json.loads(file.read_text())["sessions"][0]["messages"]] == [
        second["info"]["id"]
    ]


@pytest.mark.ci
def test_every_session_is_exported_into_a_folder(shell: Shell, tmp_path: Path) -> None:
    """A file for each tree of sessions, for the user alone; a damaged session is named and stops no other."""
    sound, damaged = shell.conversation("Sound"), shell.conversation("Damaged")

    async def work(hf: Holdfast) -> str:
        return (await hf.sessions.create(parent=sound)).id

    child = shell.make(work)
    scheme, _, path = shell.store.partition("://")
    if scheme == "file":
        (file,) = Path(path).glob(f"session/*/{damaged}.json")
        file.write_text("{")
    else:
        import sqlite3

        db = sqlite3.connect(path)
        with db:
            db.execute("UPDATE session SET data='{' WHERE id=?", (damaged,))
        db.close()
    folder = tmp_path / "out"
    done = shell.sh(f"umask 0; holdfast session export --all {folder}")
    assert done.code == 1
    assert f"session {damaged} cannot be read and was left out" in done.err
    assert [file.name for file in folder.iterdir()] == [f"{sound}.json"]
    modes = [folder.stat().st_mode & 0o777, (folder / f"{sound}.json").stat().st_mode & 0o777]
    assert modes == [0o700, 0o600]
    held = json.loads((folder / f"{sound}.json").read_text())["sessions"]
    assert [each["session"]["id"] for each in held] == [sound, child]
    assert "is no empty folder" in shell.fails("session", "export", "--all", str(folder))
    assert "name a session, or give --all FOLDER" in shell.fails("session", "export", code=2)
