"""What the command line says and leaves when the disk is full."""

import errno
import os
import resource
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio.to_thread
import pytest

from holdfast.app import Holdfast
from holdfast.cli.damaged_store import salvaged
from holdfast.cli.run.command import begun
from holdfast.cli.session.whole_file import write_whole
from holdfast.clock import SystemClock
from holdfast.errors import ContextError, StoreError
from holdfast.store.files.store import FilesStore
from holdfast.store.host import ThisHost
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.mock_provider import MockProvider
from tests.cli.conftest import Done, configured


async def test_a_session_that_stays_empty_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first prompt is not taken, and on a full disk not even the removal of its session is."""
    full = False

    def failpoint(step: str) -> None:
        if full and step == "journal write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = await FilesStore.open(tmp_path / "store", failpoint=failpoint)
    hf = Holdfast(store, SystemClock(), ThisHost())
    try:
        session = (await hf.sessions.create(directory=str(tmp_path))).id
        full = True

        async def prompt() -> None:
            await hf.sessions.set_todos(session, [])

        with pytest.raises(StoreError) as caught:
            await begun(hf, session, prompt)
    finally:
        full = False
        await hf.close()

    assert "nothing was written" not in str(caught.value)
    assert "No space left on device" in str(caught.value)
    assert capsys.readouterr().err == f"Session {session} was made, and stays without a message.\n"


FULL = """
from holdfast.cli.main import main
from holdfast.cli.run import command
from holdfast.errors import StoreError
async def follow(hf, *_):
    async def messages(*_, **__):
        raise StoreError("the disk is full")
    hf.sessions.messages = messages
    raise StoreError("the disk is full")
command.follow = follow
main()
"""


@pytest.mark.ci
async def test_a_session_is_named_too_whose_first_prompt_was_not_even_tried(
    tmp_path: Path, mock: MockProvider
) -> None:
    """The disk is full by the time that the session is to be shown."""
    shell = configured(tmp_path, mock)
    (shell.folder / "full.py").write_text(FULL)
    done = await anyio.to_thread.run_sync(shell.sh, f"{sys.executable} full.py run hello")
    (made,) = await anyio.to_thread.run_sync(lambda: shell("session", "list", "--format", "json").json())

    told = f"Session {made['id']} was made, and stays without a message.\nholdfast: the disk is full\n"
    assert done == Done(1, "", told)


async def test_a_file_that_does_not_fit_is_named_and_not_left_in_half(tmp_path: Path) -> None:
    """Neither under its own name nor under another."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b"x" * 1000

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(ContextError) as caught:
            await write_whole(pieces(), tmp_path / "out.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert str(caught.value) == f"{tmp_path}/out.json could not be written: File too large"
    assert list(tmp_path.iterdir()) == []


async def test_a_salvage_that_does_not_fit_is_named(tmp_path: Path) -> None:
    """In one line, and nothing is left of it."""
    store = await SqliteStore.open(tmp_path / "store.db")
    await store.close()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(StoreError, match=f"{tmp_path}/new.db"):
            salvaged(tmp_path / "store.db", tmp_path / "new.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.glob("*new.db*"))
