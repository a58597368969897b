"""Links swapped in between the judgement and the opening: what is outside is never read on their strength."""

from pathlib import Path

import pytest

from holdfast.errors import HoldfastError, Refused
from holdfast.location.filesystem import Filesystem
from tests.location.racing import racing

ROUNDS = 400


def seen(files: Filesystem, path: str) -> str | None:
    """What a careful reader gets who reads only what is inside."""
    try:
        judged = files.resolve(path)
        if not judged.inside:
            return None
        if judged.kind == "folder":
            return ",".join(entry.name for entry in files.list(judged).entries)
        with files.open(judged) as file:
            return file.read().decode()
    except HoldfastError:
        return None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for place in ("project/folder", "outside"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "project/folder/file").write_text("ours")
    (tmp_path / "outside/file").write_text("secret")
    return tmp_path / "project"


@pytest.mark.parametrize("path", ["folder", "folder/file"])
def test_a_link_in_the_place_of_a_judged_path_is_refused(project: Path, path: str) -> None:
    """Without a race: judged, swapped, opened."""
    files = Filesystem(project, project)
    judged = files.resolve(path)
    (project / "folder").rename(project / "moved")
    (project / "folder").symlink_to(project.parent / "outside")
    with pytest.raises(Refused, match="was replaced by something else"):
        _ = files.list(judged) if path == "folder" else files.open(judged)


def test_a_link_in_the_place_of_a_judged_file_is_refused(project: Path) -> None:
    """Also when it leads to a file inside: nobody was asked about that one."""
    files = Filesystem(project, project)
    (project / "other").write_text("other")
    for target in (project.parent / "outside/file", project / "other"):
        file = project / "folder/file"
        file.unlink()
        file.write_text("ours")
        judged = files.resolve("folder/file")
        file.unlink()
        file.symlink_to(target)
        with pytest.raises(Refused, match="was replaced by something else"):
            files.open(judged)


def test_a_racing_swap_of_a_file_never_shows_what_is_outside(project: Path) -> None:
    """Some hundred tries: the file of the project, or nothing."""
    files = Filesystem(project, project)
    target, spare = project / "folder/file", project / "spare"
    outside = project.parent / "outside/file"

    def swap(turn: int) -> None:
        if turn % 2:
            spare.symlink_to(outside)
        else:
            spare.write_text("ours")
        spare.replace(target)

    with racing(swap):
        assert {seen(files, "folder/file") for _ in range(ROUNDS)} <= {"ours", None}


@pytest.mark.parametrize(("path", "ours"), [("folder/file", "ours"), ("folder", "file")])
def test_a_racing_swap_of_a_folder_never_shows_what_is_outside(project: Path, path: str, ours: str) -> None:
    """The link stands in the middle of the path, or is what is listed."""
    (project.parent / "outside/more").touch()
    files = Filesystem(project, project)
    folder, away, link = project / "folder", project / "away", project / "link"

    def swap(turn: int) -> None:
        if turn % 2 == 0:
            link.symlink_to(project.parent / "outside")
            folder.rename(away)
            link.rename(folder)
        else:
            folder.unlink()
            away.rename(folder)

    with racing(swap):
        assert {seen(files, path) for _ in range(ROUNDS)} <= {ours, None}
