"""The command line over a store whose process was killed, with a bit changed in its log: nothing is lost."""

import shutil
import sys
from pathlib import Path

import pytest

from holdfast.app import Holdfast
from tests.cli.conftest import Shell
from tests.cli.readonly_user import close, reads

COUNT = 8


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell over SQLite."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{tmp_path}/store.db")


def leave(shell: Shell, tmp_path: Path) -> tuple[list[str], Path]:
    """Sessions that are in the log which a killed process left; one bit of its first page is changed."""
    here, left = tmp_path / "store.db", tmp_path / "left/store.db"
    left.parent.mkdir()

    async def work(hf: Holdfast) -> list[str]:
        ids: list[str] = [
            (await hf.sessions.create(directory=shell.folder, title=f"Talk {n}")).id for n in range(COUNT)
        ]
        for suffix in ("", "-wal", "-wake"):
            shutil.copyfile(f"{here}{suffix}", f"{left}{suffix}")
        return ids

    ids = shell.make(work)
    log = bytearray(Path(f"{left}-wal").read_bytes())
    log[32 + 24 + 100] ^= 1
    Path(f"{left}-wal").write_bytes(log)
    shell.store = f"sqlite://{left}"
    return ids, left


@pytest.mark.ci
def test_no_command_drops_what_stands_behind_damage(shell: Shell, tmp_path: Path) -> None:
    """Each is refused in one line that names doctor; then doctor brings every session back."""
    ids, left = leave(shell, tmp_path)
    log = Path(f"{left}-wal")
    before = left.read_bytes(), log.read_bytes()
    for command in (
        ("session", "list", "--all"),
        ("session", "show", ids[-1]),
        ("session", "search", "Talk"),
        ("session", "delete", ids[0]),
        ("run", "hello", "--model", "acme/m"),
    ):
        line = shell.fails(*command)
        assert line.startswith(f"{left} is damaged (the log is damaged at frame 1 of "), line
        assert "run `holdfast doctor`" in line
        assert (left.read_bytes(), log.read_bytes()) == before, command

    folder = tmp_path / "exported"
    assert shell("session", "export", "--all", str(folder)).code == 1
    assert {file.stem for file in folder.glob("*.json")} == set(ids)
    wrote = shell("doctor", "--salvage", str(tmp_path / "new.db"), "--format", "json")
    assert set(wrote.json()["whole"]) == set(ids)
    assert (left.read_bytes(), log.read_bytes()) == before
    assert "SQLite drops what stands behind it" in shell("doctor").out
    assert shell("doctor", "--repair").code == 0
    assert {each["id"] for each in shell("session", "list", "--all", "--format", "json").json()} == set(ids)


@pytest.mark.skipif(sys.platform != "linux", reason="root's powers are given up with a call of Linux")
def test_a_user_who_may_only_read_is_told(shell: Shell, tmp_path: Path) -> None:
    """Such a one can drop nothing, and would take a part of the sessions for all of them."""
    _, left = leave(shell, tmp_path)
    Path(f"{left}-shm").touch()
    close(left.parent, writable=False)
    try:
        done = reads(shell, "session", "list", "--all")
    finally:
        close(left.parent, writable=True)
    assert (done.code, done.out) == (1, "")
    assert "the log is damaged at frame 1 of" in done.err
