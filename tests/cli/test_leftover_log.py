"""The command line over a store whose process was killed, with a bit changed in its log, or its file gone or
empty: nothing is lost.
"""

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


def damage(shell: Shell, tmp_path: Path) -> tuple[list[str], Path]:
    """What a killed process left; one bit of the first page in its log is changed."""
    ids, left = leave(shell, tmp_path)
    log = bytearray(Path(f"{left}-wal").read_bytes())
    log[32 + 24 + 100] ^= 1
    Path(f"{left}-wal").write_bytes(log)
    return ids, left


def leave(shell: Shell, tmp_path: Path) -> tuple[list[str], Path]:
    """Sessions that are in the log which a killed process left."""
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
    shell.store = f"sqlite://{left}"
    return ids, left


@pytest.mark.ci
def test_no_command_drops_what_stands_behind_damage(shell: Shell, tmp_path: Path) -> None:
    """Each is refused in one line that names doctor; then doctor brings every session back."""
    ids, left = damage(shell, tmp_path)
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
    _, left = damage(shell, tmp_path)
    Path(f"{left}-shm").touch()
    close(left.parent, writable=False)
    try:
        done = reads(shell, "session", "list", "--all")
    finally:
        close(left.parent, writable=True)
    assert (done.code, done.out) == (1, "")
    assert "the log is damaged at frame 1 of" in done.err


@pytest.mark.ci
@pytest.mark.parametrize("state", ["gone", "empty"])
def test_a_log_without_its_file_is_not_removed(shell: Shell, tmp_path: Path, state: str) -> None:
    """SQLite removes such a log when it opens the file; here nothing is touched, and all of it comes back."""
    ids, left = leave(shell, tmp_path)
    log = Path(f"{left}-wal")
    if state == "gone":
        left.unlink()
    else:
        left.write_bytes(b"")
    before = log.read_bytes()
    for command in (
        ("session", "list", "--all"),
        ("session", "show", ids[-1]),
        ("session", "delete", ids[0]),
        ("run", "hello", "--model", "acme/m"),
    ):
        line = shell.fails(*command)
        assert line == (
            f"{left} is damaged (it is {state}, and its log holds what was committed last); "
            "run `holdfast doctor`, or restore a backup"
        )
        assert (left.exists(), log.read_bytes()) == (state == "empty", before), command

    told = shell("doctor")
    assert told.code == 1
    assert f"readable are {COUNT} sessions whole" in told.out
    wrote = shell("doctor", "--salvage", str(tmp_path / "new.db"), "--format", "json")
    assert set(wrote.json()["whole"]) == set(ids)
    assert log.read_bytes() == before
    assert shell("doctor", "--repair").code == 0
    assert {each["id"] for each in shell("session", "list", "--all", "--format", "json").json()} == set(ids)
    assert shell("doctor").code == 0


def test_a_store_that_is_gone_names_its_backups(shell: Shell, tmp_path: Path) -> None:
    """Where nothing is left but the sign that a store was here, nothing is made in its place."""
    _, left = leave(shell, tmp_path)
    for suffix in ("", "-wal"):
        Path(f"{left}{suffix}").unlink()
    line = shell.fails("session", "list")
    assert line == (
        f"{left} is gone although a store was here; bring a backup back with `holdfast doctor --restore`, "
        f"or remove {left}-wake to begin again"
    )
    assert sorted(path.name for path in left.parent.iterdir()) == ["store.db-wake"]


@pytest.mark.ci
def test_what_was_in_a_lost_file_is_named(shell: Shell, tmp_path: Path) -> None:
    """All but the last commit was in the file: salvage and repair say so, and which backup may hold more;
    neither ends with 0, and what is called kept is there.
    """
    left = tmp_path / "left/store.db"
    left.parent.mkdir()
    here = tmp_path / "store.db"

    async def work(hf: Holdfast) -> None:
        for n in range(40):
            await hf.sessions.create(directory=shell.folder, title=f"Talk {n} " + "x" * 900)
        await hf.sessions.create(directory=shell.folder, title="Last")

    shell.make(work)

    async def last(hf: Holdfast) -> None:
        await hf.sessions.create(directory=shell.folder, title="Last")
        for suffix in ("-wal", "-wake"):
            shutil.copyfile(f"{here}{suffix}", f"{left}{suffix}")

    shell.make(last)
    backups = left.with_name("store.db-backups")
    backups.mkdir()
    shutil.copyfile(here, backups / "20250101-000000.db")
    shell.store = f"sqlite://{left}"
    gone = "pages were in the file, which is gone or empty"

    wrote = shell("doctor", "--salvage", str(tmp_path / "new.db"))
    assert (wrote.code, gone in wrote.out) == (1, True)
    copied = shell("doctor", "--backup", str(tmp_path / "copy.db"), "--format", "json")
    assert (copied.code, copied.json()["backup"]) == (1, f"{tmp_path}/copy.db-wal")
    assert f"copied to {tmp_path}/copy.db-wal" in copied.err
    mended = shell("doctor", "--repair", "--format", "json")
    assert mended.code == 1
    report = mended.json()
    assert gone in [each["what"] for each in report["findings"]][1]
    assert all(each["given_up"] for each in report["findings"][1:])
    assert "--restore 20250101-000000.db" in report["advice"][0]
    assert report["advice"][0] in mended.err
    assert report["backup"].endswith(".damaged-wal")
    assert f"the damaged log is kept as {report['backup']}\n" in mended.err
    assert Path(report["backup"]).read_bytes() == Path(f"{tmp_path}/copy.db-wal").read_bytes()
