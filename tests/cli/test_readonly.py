"""A store that this user may only read is read, and nothing beside it is made."""

import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.readonly_user import close, reads


@pytest.fixture(params=["sqlite", "file"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """A shell over each store that lies in a folder."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return Shell(tmp_path / "home", tmp_path / "project", f"{request.param}://{tmp_path}/data/store")


@pytest.mark.ci
@pytest.mark.skipif(sys.platform != "linux", reason="root's powers are given up with a call of Linux")
@pytest.mark.parametrize("wake", [True, False])
def test_a_store_in_a_folder_that_cannot_be_written_is_read(shell: Shell, tmp_path: Path, wake: bool) -> None:
    """Lists, exports and the examination are as ever; what writes is one clear line; no file is made."""
    session = shell.conversation("A talk")
    root = tmp_path / "data"
    listed = shell("session", "list", "--all", "--format", "json").out if wake else None
    exported = shell("session", "export", session).out if wake else None
    if not wake:
        names = ("wake", "lock", "queue") if (root / "store").is_dir() else ("store-wake", "store-lock")
        for name in names:
            (root / "store" / name if (root / "store").is_dir() else root / name).unlink()
    close(root, writable=False)
    before = sorted((str(path), path.stat().st_mtime_ns) for path in (root, *root.rglob("*")))
    try:
        done = {
            name: reads(shell, *name.split())
            for name in (
                "session list --all --format json",
                f"session show {session}",
                f"session export {session}",
                "doctor",
            )
        }
        denied = reads(shell, "session", "archive", session)
        searched = reads(shell, "session", "search", "frobnicator")
        after = sorted((str(path), path.stat().st_mtime_ns) for path in (root, *root.rglob("*")))
    finally:
        close(root, writable=True)

    assert {name: (each.code, each.err) for name, each in done.items() if each.code} == {}
    assert listed in (None, done["session list --all --format json"].out)
    assert exported in (None, done[f"session export {session}"].out)
    assert "it is fixed" in done[f"session show {session}"].out
    assert "1 sessions" in done["doctor"].out
    assert (denied.code, "can only be read by this user, not written" in denied.err) == (1, True)
    assert (searched.code, session in searched.out) == (0, True)
    assert after == before


@pytest.mark.skipif(sys.platform != "linux", reason="root's powers are given up with a call of Linux")
@pytest.mark.parametrize("shell", ["sqlite"], indirect=True)
def test_a_store_that_is_closed_to_this_user_is_said(shell: Shell, tmp_path: Path) -> None:
    """Whatever lies beside it: a log tells nothing of why it cannot be read."""
    shell.conversation("A talk")
    store = tmp_path / "data/store"
    store.chmod(0)
    Path(f"{store}-wal").write_bytes(b"x")
    done = reads(shell, "session", "list", "--all")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"holdfast: {store} can neither be read nor written by this user\n"


@pytest.mark.ci
@pytest.mark.skipif(sys.platform != "linux", reason="root's powers are given up with a call of Linux")
def test_a_log_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """Commits that are in the log alone need a file beside it; without one the rest is not taken for all."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    shell = Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{tmp_path}/data/store")
    shell.conversation("A talk")
    copy = tmp_path / "copy"
    copy.mkdir()

    async def work(hf: object) -> None:
        await hf.sessions.create(directory=str(shell.folder))  # type: ignore[attr-defined]
        for name in ("store", "store-wal"):
            (copy / name).write_bytes(b"")
            os.system(f"cp {tmp_path}/data/{name} {copy}/{name}")  # Not here: closing it drops our locks.

    shell.make(work)
    shell.store = f"sqlite://{copy}/store"
    close(copy, writable=False)
    try:
        done = reads(shell, "session", "list", "--all")
    finally:
        close(copy, writable=True)
    assert (done.code, done.out) == (1, "")
    assert "store-wal holds commits that cannot be read where nothing can be written" in done.err
    assert len(shell("session", "list", "--all", "--format", "json").json()) == 2
