"""The file of a new store is its user's alone from its first moment."""

import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from holdfast.store.sqlite.database import Database


@pytest.fixture
def _no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_no_umask")
def test_sqlite_never_has_a_file_that_others_may_read(tmp_path: Path) -> None:
    """Nor when it is opened for the first time: who opened it then could read on for ever."""
    modes: list[int] = []

    class Watched(Database):
        def _open(self, *, readonly: bool) -> apsw.Connection:
            modes.append(self.path.stat().st_mode & 0o777)
            return super()._open(readonly=readonly)

    Watched(tmp_path / "store.db").prepare(create=True)
    assert modes == [0o600]
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}
