"""The mount points that a start makes in the temporary folder of its session."""

import os
from pathlib import Path

import pytest

from holdfast.location.box.launcher.mounts import make_point


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_point_that_another_start_has_just_made_is_taken(tmp_path: Path, *, is_folder: bool) -> None:
    """Commands of one session start side by side and share the folder: nobody's start fails, and nobody's
    point is changed.
    """
    point = tmp_path / "project" / "point"
    make_point(str(point), is_folder=is_folder)
    made = os.lstat(point)

    make_point(str(point), is_folder=is_folder)

    assert os.lstat(point) == made
    assert (point.is_dir(), oct(made.st_mode & 0o777)) == (is_folder, "0o711" if is_folder else "0o600")


def test_a_link_at_the_place_of_a_point_stays_a_link(tmp_path: Path) -> None:
    """Nothing is made behind it; whoever attaches a mount there is told."""
    point = tmp_path / "point"
    point.symlink_to(tmp_path / "elsewhere")

    make_point(str(point), is_folder=True)

    assert (point.is_symlink(), (tmp_path / "elsewhere").exists()) == (True, False)
