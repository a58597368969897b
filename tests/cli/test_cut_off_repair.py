"""A repair or a restore that is killed at each step of its exchange: the next one loses nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.app import Holdfast
from tests.cli.conftest import Shell

KILLED = """
import os, signal, sys
from holdfast.store.sqlite import exchange
passed, do, last = [], exchange.exchange, int(sys.argv[1])
def failpoint(step):
    passed.append(step)
    if len(passed) == last:
        os.kill(os.getpid(), signal.SIGKILL)
exchange.exchange = lambda *names, **more: do(*names, **more, failpoint=failpoint)
sys.argv = ["holdfast", *sys.argv[2:]]
from holdfast.cli.main import main
main()
"""
COUNT = 6


@pytest.mark.ci
@pytest.mark.parametrize("way", ["--repair", "--restore"])
def test_a_killed_exchange_is_taken_up_by_the_next(tmp_path: Path, way: str) -> None:
    """At step n = 1, 2, 3 … until it completes; one session is in the file, the others in its damaged log."""
    for name in ("home", "project", "left"):
        (tmp_path / name).mkdir()
    here, left = tmp_path / "store.db", tmp_path / "left"
    shell = Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{here}")

    async def work(hf: Holdfast) -> set[str]:
        ids = {str((await hf.sessions.create(directory=shell.folder)).id) for _ in range(COUNT)}
        for suffix in ("", "-wal", "-wake"):
            shutil.copyfile(f"{here}{suffix}", left / f"store.db{suffix}")
        return ids

    first = shell.conversation()
    shutil.copyfile(here, left / "backup.db")
    ids = shell.make(work) | {first}
    log = bytearray((left / "store.db-wal").read_bytes())
    log[32 + 24 + 100] ^= 1
    (left / "store.db-wal").write_bytes(log)
    asked = ["doctor", way, *([str(left / "backup.db")] if way == "--restore" else [])]
    wanted = ids if way == "--repair" else {first}

    for step in range(1, 100):
        place = tmp_path / str(step)
        shutil.copytree(left, place)
        shell.store = f"sqlite://{place}/store.db"
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, str(step), *asked],
            cwd=shell.folder,
            env=shell.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        if killed.returncode >= 0:
            assert killed.returncode == 0, killed
            break
        assert killed.returncode == -9
        assert shell(*asked).code == 0
        listed = shell("session", "list", "--all", "--format", "json").json()
        assert {each["id"] for each in listed} == wanted, step
        (kept,) = place.glob("store.db.*-wal")
        assert kept.read_bytes() == bytes(log), step
        assert kept.with_name(kept.name.removesuffix("-wal")).exists()
        assert not [each.name for each in place.iterdir() if each.name.endswith("-exchange")]
        assert not list(place.glob(".store.db*")), step
    assert step > 7
