"""A command that is ended by a signal in the middle of its writing leaves nothing half written behind."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli import end_signals
from holdfast.cli.session.whole_file import prepared_folder
from holdfast.errors import InvalidInput
from tests.cli.conftest import Shell
from tests.store.sqlite import damage

PAUSED = """
import importlib, signal, sys
for each in (signal.SIGTERM, signal.SIGHUP):  # Whoever runs the tests may ignore them.
    signal.signal(each, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.argv[2]:
    signal.signal(signal.Signals[sys.argv[2]], signal.SIG_IGN)
module, name = sys.argv[1].rsplit(".", 1)
room = importlib.import_module(module)
do = getattr(room, name)
def paused(*names, **more):
    print("paused", flush=True)
    sys.stdin.readline()
    return do(*names, **more)
setattr(room, name, paused)
sys.argv = ["holdfast", *sys.argv[3:]]
from holdfast.cli.main import main
main()
"""
"""Waits before a function: there, a draft lies."""

OWN = ("store.db-lock", "store.db-wal", "store.db-shm")
WAYS = {
    "salvage": ("holdfast.store.sqlite.salvage.rescue.name_store", "doctor --salvage {out}/new.db"),
    "repair": ("holdfast.store.sqlite.exchange.exchange", "doctor --repair"),
    "copy": ("holdfast.store.sqlite.salvage.raw_file.copy_raw", "doctor --repair --backup {out}/copy.db"),
    "export of a salvage": ("holdfast.cli.damaged_store.salvaged", "session export --all {out}"),
    "export": ("holdfast.cli.session.whole_file.take_name", "session export --all {out}"),
}
"""`export` runs an event loop; of a store that is sound it writes each file from there."""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell over SQLite."""
    for name in ("home", "project", "data", "out"):
        (tmp_path / name).mkdir()
    made = Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{tmp_path}/data/store.db")
    made.conversation()
    return made


def prepared(shell: Shell, way: str) -> tuple[str, list[str]]:
    """Where the command waits, and what it is; the head of its store is gone, where it is not to be sound."""
    place = shell.home.parent
    if way != "export":
        path = place / "data/store.db"
        path.write_bytes(damage.hit(path.read_bytes(), 1, damage.garbage(damage.PAGE, 1)))
    point, command = WAYS[way]
    return point, command.format(out=place / "out").split()


def names(shell: Shell) -> set[str]:
    """What lies beside the store and where the command writes; its own log and locks aside."""
    place = shell.home.parent
    found = [*(place / "data").iterdir(), *(place / "out").iterdir()]
    return {each.name for each in found if each.name not in OWN}


def ended(
    shell: Shell, point: str, command: list[str], by: signal.Signals, ignored: str = ""
) -> "subprocess.CompletedProcess[str]":
    """The command, which was sent a signal while it waited, and then let go."""
    process = subprocess.Popen(
        [sys.executable, "-c", PAUSED, point, ignored, *command],
        cwd=shell.folder,
        env=shell.variables(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "paused\n"
    process.send_signal(by)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.mark.ci
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_a_command_and_takes_its_drafts_along(shell: Shell, way: str, by: int) -> None:
    """As Ctrl-C does; the code is the signal's, and there is one line."""
    before, told = names(shell), signal.Signals(by)
    done = ended(shell, *prepared(shell, way), told)
    left = names(shell)
    if way == "export":  # Its only file was about to be named, and was whole.
        left = {each for each in left if not (each.startswith("ses_") and each.endswith(".json"))}
    assert left == before
    assert (done.returncode, done.stderr.splitlines()[-1]) == (128 + told, "holdfast: interrupted")
    assert "Traceback" not in done.stderr


def test_a_command_that_ctrl_c_does_not_reach_is_ended_too(shell: Shell) -> None:
    """As a shell starts what runs beside it."""
    before = names(shell)
    done = ended(shell, *prepared(shell, "salvage"), signal.SIGTERM, "SIGINT")
    assert (done.returncode, names(shell)) == (143, before)


def test_what_nohup_keeps_away_stays_away(shell: Shell) -> None:
    """A signal that was ignored before ends nothing."""
    before = names(shell)
    done = ended(shell, *prepared(shell, "salvage"), signal.SIGHUP, "SIGHUP")
    assert (done.returncode, names(shell)) == (0, {*before, "new.db"})


def test_a_signal_behind_the_end_changes_nothing() -> None:
    """All is printed: the exit code stands. Only what was listened for is kept away."""
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)]
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.default_int_handler)
        end_signals.listen()
        assert end_signals.finish(130) == 130
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.default_int_handler
    finally:
        for each, handler in zip((signal.SIGTERM, signal.SIGHUP), before, strict=True):
            signal.signal(each, handler)


@pytest.mark.ci
@pytest.mark.parametrize("way", [each for each in WAYS if each != "copy"])
def test_what_a_killed_command_has_left_is_removed_by_the_next(shell: Shell, way: str) -> None:
    """By the next one that writes there."""
    before, (point, command) = names(shell), prepared(shell, way)
    assert ended(shell, point, command, signal.SIGKILL).returncode == -signal.SIGKILL
    assert len(names(shell)) > len(before)
    assert shell(*command).code == int(way == "export of a salvage")  # It says so where a file is damaged.
    assert not [each for each in names(shell) if each.startswith(".")]
    assert names(shell) > before


def test_a_folder_is_prepared_under_a_living_export(tmp_path: Path) -> None:
    """What another one writes there stays, and what is no draft of ours stays in any case."""
    folder = tmp_path / "out"
    drafts = [folder / ".salvage-abcdefgh/store.db", folder / ".ses_abc.json.0123abcd"]
    with prepared_folder(folder):
        for each in drafts:
            each.parent.mkdir(exist_ok=True)
            each.touch()
        with pytest.raises(InvalidInput, match="is no empty folder"), prepared_folder(folder):
            pass
        assert all(each.exists() for each in drafts)
    mine = folder / ".salvage-mine" / "photo.jpg"
    mine.parent.mkdir()
    mine.touch()
    with pytest.raises(InvalidInput, match="is no empty folder"), prepared_folder(folder):
        pass
    assert [each.name for each in folder.iterdir()] == [".salvage-mine"]
    assert mine.exists()
