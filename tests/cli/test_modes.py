"""Whatever the umask, what Holdfast makes is for the user alone: files 0600, folders 0700."""

import stat
import sys
from pathlib import Path

import anyio.to_thread
import pytest

from holdfast.testing.mock_provider import MockProvider, Reply, Say
from tests.cli.conftest import Shell, configured

KEEP = """
import asyncio
from holdfast.clock import SystemClock
from holdfast.person import directories, small_file
from holdfast.tools.managed_output import ManagedOutput
asyncio.run(ManagedOutput(directories.data() / "tool-output", SystemClock()).keep("words"))
small_file.write(directories.cache() / "deep" / "er" / "file", b"x")
"""

LOOK = """
import asyncio, stat, sys, holdfast
from pathlib import Path
async def main():
    async with holdfast.open(sys.argv[2]) as hf:
        await hf.sessions.create(directory="/")
        print("open:", [str(p) for p in Path(sys.argv[1]).rglob("*") if p.stat().st_mode & 0o077])
asyncio.run(main())
"""


def modes(*roots: Path) -> dict[str, str]:
    """Everything below that others could use, with its mode."""
    found = {}
    for root in roots:
        for path in (root, *root.rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode != (0o700 if path.is_dir() else 0o600):
                found[str(path)] = oct(mode)
    return found


@pytest.mark.ci
@pytest.mark.parametrize("umask", ["000", "022", "0777"])
@pytest.mark.parametrize("engine", ["sqlite", "file"])
async def test_everything_is_for_the_user_alone(
    tmp_path: Path, mock: MockProvider, umask: str, engine: str
) -> None:
    """A turn, a search, credentials, a model that is not installed, kept output, copies: all is walked."""
    shell = configured(tmp_path, mock)
    shell.home.chmod(0o700)
    (shell.home / ".config").chmod(0o700)
    (shell.home / ".config" / "holdfast").chmod(0o700)
    (shell.home / ".config" / "holdfast" / "holdfast.json").chmod(0o600)
    data = shell.home / ".local" / "share" / "holdfast"
    shell.store = f"{engine}://{data}/deep/store" if engine == "file" else f"sqlite://{data}/holdfast.db"
    mock.play(Reply((Say("Hello there, frobnicator."),)))
    (shell.folder / "notes.txt").write_text("no model")
    (shell.folder / "keep.py").write_text(KEEP)
    (shell.folder / "look.py").write_text(LOOK)
    out = tmp_path / "out"

    def work() -> str:
        script = [
            f"umask {umask}",
            "holdfast models install smollm2 --from notes.txt",
            "holdfast run hello",
            "holdfast session search frobnicator",
            "echo sk-x | holdfast providers login openai --key-stdin",
            "holdfast trust .",
            f"holdfast session export --all {out}",
            f"holdfast doctor --backup {data}/copy",
            f"{sys.executable} keep.py",
        ]
        if engine == "sqlite":
            script.append(f"holdfast doctor --salvage {data}/new.db")
            script.append(f"touch -d @0 {data}/holdfast.db-backups/last")
            script.append(f"{sys.executable} -m holdfast.cli.daily_backup {data}/holdfast.db")
        # While a process has the store open, its log and its shared memory are there too.
        script.append(f"{sys.executable} look.py {data} {shell.store}")
        return shell.sh("\n".join(script)).out

    told = await anyio.to_thread.run_sync(work)
    assert "Hello there" in told
    assert "open: []" in told
    assert modes(shell.home, out) == {}


@pytest.mark.ci
def test_a_salvage_can_be_read_under_any_umask(tmp_path: Path) -> None:
    """Also where the umask takes the user's own bits away: what `--salvage` and `--repair` make is 0600."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    store = tmp_path / "data/store.db"
    shell = Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{store}")
    shell.conversation()
    with store.open("r+b") as file:
        file.write(b"garbage" * 100)
    new = store.with_name("new.db")
    done = shell.sh(f"umask 0777; holdfast doctor --salvage {new}; holdfast doctor --repair")
    assert "sound" in done.out
    (kept,) = store.parent.glob("store.db.*.damaged")
    assert {each.name: oct(each.stat().st_mode & 0o777) for each in (new, store, kept)} == dict.fromkeys(
        (new.name, store.name, kept.name), oct(0o600)
    )
