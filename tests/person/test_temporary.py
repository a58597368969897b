"""The private folder for temporary files: ours alone, or none."""

import os
import stat
from pathlib import Path

import pytest

from holdfast.errors import ContextError
from holdfast.person import temporary

NAME = f"holdfast-{os.geteuid()}"


@pytest.fixture(autouse=True)
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the system's."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277], ids=oct)
def test_it_is_made_private_whatever_the_umask(system: Path, umask: int) -> None:
    """Mode 0700, and found again."""
    before = os.umask(umask)
    try:
        path = temporary.folder()
    finally:
        os.umask(before)
    assert (path, temporary.folder()) == (system / NAME, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_one_that_was_opened_to_others_is_closed_again(system: Path) -> None:
    """It is ours, so it may be mended."""
    (system / NAME).mkdir()
    (system / NAME).chmod(0o777)
    assert stat.S_IMODE(temporary.folder().stat().st_mode) == 0o700


def test_a_link_in_its_place_is_refused(system: Path) -> None:
    """Wherever it leads, whoever made it."""
    (system / "theirs").mkdir()
    (system / NAME).symlink_to(system / "theirs")
    with pytest.raises(ContextError, match=f"{NAME} is no folder of ours; move it away"):
        temporary.folder()


def test_one_of_another_user_is_refused(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner could read what we put there."""
    (system / NAME).mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    (system / f"holdfast-{os.getuid() + 1}").mkdir()
    with pytest.raises(ContextError, match="belongs to another user"):
        temporary.folder()


def test_a_system_folder_that_takes_nothing_is_named(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not there stands for every other trouble."""
    monkeypatch.setenv("TMPDIR", str(system / "missing"))
    with pytest.raises(ContextError, match="cannot be made: No such file or directory"):
        temporary.folder()
