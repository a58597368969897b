"""The daily backup as a process of its own, its switch, and `doctor --restore`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.app import Holdfast, _start_backup
from holdfast.store.batch import Batch
from holdfast.store.sqlite.backups import Backups
from holdfast.store.sqlite.database import Database
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.store_contract.build import session
from tests.cli.conftest import Shell, settings
from tests.until import until


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell over SQLite."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{tmp_path}/store.db")


def back_up(shell: Shell, path: Path) -> None:
    """What is started when a backup is due, here waited for."""
    os.utime(path.with_name("store.db-backups") / "last", (0, 0))
    command = [sys.executable, "-P", "-m", "holdfast.cli.daily_backup", str(path)]
    done = subprocess.run(command, env=shell.variables(), capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.ci
def test_a_backup_is_brought_back_and_the_present_file_kept(shell: Shell, tmp_path: Path) -> None:
    """The list names it; the store is as it was then; the file of now lies beside it, whole."""
    path = tmp_path / "store.db"
    first = shell.conversation("First")
    assert "no automatic backups yet" in shell("doctor", "--restore").err
    back_up(shell, path)
    (backup,) = path.with_name("store.db-backups").glob("*.db")
    log = (shell.home / ".local/state/holdfast/holdfast.log").read_text()
    assert log.endswith(f" store backup.made name={backup.name} bytes={backup.stat().st_size}\n")
    held = backup.read_bytes()
    second = shell.conversation("Second")

    listed = shell("doctor", "--restore", "--format", "json").json()
    assert [each["name"] for each in listed] == [backup.name]
    assert backup.name in shell("doctor", "--restore").out
    assert "no backup is called 'nope'" in shell.fails("doctor", "--restore", "nope")
    done = shell("doctor", "--restore", backup.name)
    assert (done.code, backup.name in done.out) == (0, True)

    ids = [each["id"] for each in shell("session", "list", "--all", "--format", "json").json()]
    assert ids == [first]
    assert shell("doctor").code == 0
    (kept,) = tmp_path.glob("store.db.*.replaced")
    there = shell("--store", f"sqlite://{kept}", "session", "list", "--all", "--format", "json").json()
    assert {each["id"] for each in there} == {first, second}
    assert backup.read_bytes() == held


@pytest.mark.ci
def test_a_store_that_is_gone_is_brought_back(shell: Shell, tmp_path: Path) -> None:
    """A lost file, and one that is garbage: doctor names the backup, and --restore brings it."""
    path = tmp_path / "store.db"
    session = shell.conversation("First")
    shell.environment["HOLDFAST_LOG"] = "no level"  # The backup is made all the same.
    back_up(shell, path)
    del shell.environment["HOLDFAST_LOG"]
    (backup,) = path.with_name("store.db-backups").glob("*.db")
    path.write_bytes(b"garbage" * 4096)
    looked = shell("doctor")
    assert (looked.code, f"--restore {backup.name}" in looked.out) == (1, True)
    assert "an empty store does not take its place" in shell.fails("doctor", "--repair")
    assert shell("doctor", "--restore", backup.name).code == 0
    assert shell("session", "show", session).code == 0
    path.unlink()
    assert "bring a backup back" in shell.fails("session", "list")
    assert shell("doctor", "--restore", str(backup)).code == 0
    assert shell("session", "show", session).code == 0


@pytest.mark.ci
def test_a_restore_is_undone(shell: Shell, tmp_path: Path) -> None:
    """The file that was replaced has its log beside it, where a process was killed: it comes back with it."""
    left = tmp_path / "left.db"

    async def work(hf: Holdfast) -> str:
        for _ in range(2):
            await hf.sessions.create(directory=shell.folder)
        session = await hf.sessions.create(directory=shell.folder, title="In the log")
        for suffix in ("", "-wal", "-wake"):
            shutil.copyfile(tmp_path / f"store.db{suffix}", f"{left}{suffix}")
        return str(session.id)

    shell.conversation("First")
    shutil.copyfile(tmp_path / "store.db", tmp_path / "backup.db")
    session = shell.make(work)
    shell.store = f"sqlite://{left}"
    done = shell("doctor", "--restore", str(tmp_path / "backup.db"), "--format", "json").json()
    assert shell("session", "show", session).code == 1
    replaced = Path(done["kept"])
    held = {each.name: each.read_bytes() for each in tmp_path.glob(f"{replaced.name}*")}
    assert set(held) == {replaced.name, f"{replaced.name}-wal"}

    assert shell("doctor", "--restore", str(replaced)).code == 0
    assert shell("session", "show", session).code == 0
    assert {name: (tmp_path / name).read_bytes() for name in held} == held
    assert not list(tmp_path.glob(".*left.db*"))
    log = bytearray(held[f"{replaced.name}-wal"])
    log[32 + 24 + 100] ^= 1
    Path(f"{replaced}-wal").write_bytes(log)
    assert f"{replaced} is damaged (the log" in shell.fails("doctor", "--restore", str(replaced))
    assert not list(tmp_path.glob(".*left.db*"))


async def test_it_is_started_where_no_program_is_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its low priority needs no program `nice`."""
    path = tmp_path / "store.db"
    store = await SqliteStore.open(path)
    await store.commit(Batch((session(),)))
    await store.close()
    backups = Backups(Database(path))
    backups.is_due()
    os.utime(backups.folder / "last", (0, 0))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    _start_backup(path)
    await until(lambda: len(backups.listed()) == 1 and not backups.is_due())


async def test_no_command_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a process of nobody's, in a session of its own, and is at work when the start of it returns."""
    told, gate, end = tmp_path / "told", tmp_path / "gate", tmp_path / "end"
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$(ps -o ppid=,sid= -p $$)" >{told}.draft; mv {told}.draft {told}\n'
        f"n=0; until [ -e {gate} ] || [ $n -gt 300 ]; do sleep 0.1; n=$((n + 1)); done; touch {end}\n"
    )
    python.chmod(0o700)
    run, ended = subprocess.run, list[int]()

    def noted(*arguments: Any, **named: Any) -> Any:
        done = run(*arguments, **named)
        ended.append(done.returncode)
        return done

    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(subprocess, "run", noted)
    try:
        _start_backup(tmp_path / "store.db")
        assert ended == [0]
        await until(told.exists)
    finally:
        gate.touch()
        await until(end.exists)  # It must not outlive the test, nor its folder.
    parent, leads = map(int, told.read_text().split())
    assert parent != os.getpid()
    assert leads != os.getsid(0)


def test_it_comes_behind_everyone_s_work(shell: Shell, tmp_path: Path) -> None:
    """With the lowest priority."""
    program = (
        "import os, runpy, sys; sys.argv = ['x', sys.argv[1]]; "
        "runpy.run_module('holdfast.cli.daily_backup', run_name='__main__'); print(os.nice(0))"
    )
    command = [sys.executable, "-P", "-c", program, str(tmp_path / "store.db")]
    done = subprocess.run(command, env=shell.variables(), capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"19\n", b"")


@pytest.mark.ci
def test_it_can_be_switched_off(shell: Shell, tmp_path: Path) -> None:
    """By the user's own settings; those of a project have no say."""
    path = tmp_path / "store.db"
    shell.conversation()
    long_ago = "no automatic backup was made since 1970-01-01"
    os.utime(path.with_name("store.db-lock"), (0, 0))
    assert long_ago in shell("doctor").out
    (shell.folder / "holdfast.json").write_text('{"backup": false}')
    settings(shell, backup=False)
    back_up(shell, path)
    assert not list(path.with_name("store.db-backups").glob("*.db"))
    assert long_ago not in shell("doctor").out
    settings(shell)
    back_up(shell, path)
    assert len(list(path.with_name("store.db-backups").glob("*.db"))) == 1
