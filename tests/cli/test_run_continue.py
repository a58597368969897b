"""Which session `holdfast run --continue` goes on with."""

import subprocess
from pathlib import Path

import anyio.to_thread
import pytest

from holdfast.app import Holdfast
from holdfast.testing.mock_provider import MockProvider, Reply, Say
from tests.cli.conftest import Done, Shell, configured, said
from tests.sessions.filling import ask


@pytest.fixture
def shell(tmp_path: Path, mock: MockProvider) -> Shell:
    """A person whose settings name the provider."""
    return configured(tmp_path, mock)


async def talk(shell: Shell, mock: MockProvider, *arguments: str) -> tuple[str, str]:
    """Say something, and answer the session that heard it, and what stood on standard error."""
    mock.play(Reply((Say("Yes."),)))
    done = await said(shell, "run", *arguments, "hello")
    assert (done.code, done.out) == (0, "Yes.\n"), done
    listed = (await said(shell, "session", "list", "--all", "--format", "json")).json()
    return str(max(listed, key=lambda each: each["time"]["updated"])["id"]), done.err


@pytest.mark.ci
async def test_the_latest_with_something_in_it(shell: Shell, mock: MockProvider) -> None:
    """Not an empty one, not a child, not an archived one."""
    older, _ = await talk(shell, mock)
    wanted, _ = await talk(shell, mock)
    hidden, _ = await talk(shell, mock)

    async def work(hf: Holdfast) -> None:
        await hf.sessions.archive(hidden)
        child = await hf.sessions.create(parent=wanted)
        await ask(hf, child.id, "what a subagent is told")
        for _ in range(25):  # More than a page of them.
            await hf.sessions.create(directory=shell.folder)

    await anyio.to_thread.run_sync(shell.make, work)

    assert older != wanted
    assert await talk(shell, mock, "--continue") == (wanted, "")


@pytest.mark.ci
@pytest.mark.needs("git")
async def test_of_the_project_from_anywhere_in_its_checkout(
    shell: Shell, mock: MockProvider, tmp_path: Path
) -> None:
    """Where the session works is said when it is not here. Another checkout or project is not meant."""
    shell.environment = {"HOLDFAST_FAKE_VCS": ""}
    early, _ = await talk(shell, mock)  # Before there was a repository.
    git(shell.folder, "init", "-q")
    assert await talk(shell, mock, "--continue") == (early, "")
    git(shell.folder, "commit", "-q", "--allow-empty", "-m", "first")
    git(shell.folder, "worktree", "add", "-q", str(tmp_path / "beside"))
    assert await talk(shell, mock, "--continue") == (early, "")

    below = Shell(shell.home, shell.folder / "below", shell.store)
    beside = Shell(shell.home, tmp_path / "beside", shell.store)
    outside = Shell(shell.home, tmp_path, shell.store)
    below.folder.mkdir()
    for each in (below, beside, outside):
        each.environment = shell.environment
    session, _ = await talk(shell, mock)

    assert await talk(below, mock, "--continue") == (
        session,
        f"Going on with {session}, which works in {shell.folder}.\n",
    )
    nothing = "no session of this project is there to go on with; without --continue a new one begins"
    for each in (beside, outside):
        assert await said(each, "run", "--continue", "hello") == Done(1, "", f"holdfast: {nothing}\n")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)
