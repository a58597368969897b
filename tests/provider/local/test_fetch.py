"""How far a download has come, while pip works beside."""

import shutil
from pathlib import Path

from holdfast.provider.local import fetch
from tests.location.racing import racing


def test_folders_that_pip_removes_meanwhile_are_passed_over(tmp_path: Path) -> None:
    """Its temporary folders come and go while they are looked through; what stays is counted."""
    (tmp_path / "whole.whl").write_bytes(bytes(7))

    def come_and_go(turn: int) -> None:
        folder = tmp_path / f"pip-{turn % 3}"
        for each in ("a", "b"):
            (folder / each).mkdir(parents=True)
        shutil.rmtree(folder)

    with racing(come_and_go):
        seen = {fetch._written(tmp_path) for _ in range(2_000)}

    assert seen == {7}
