"""Which folders a person trusts."""

import os
from pathlib import Path

import pytest

import holdfast
from holdfast.config.pins.project_trust import Grant
from holdfast.errors import InvalidInput, Refused


async def test_the_nearest_decision_decides(tmp_path: Path) -> None:
    """By real path: a link to a folder is the folder; a refusal below a trusted folder holds."""
    real = tmp_path.resolve()
    inner, other = real / "a/b/c", real / "other"
    inner.mkdir(parents=True)
    other.mkdir()
    (real / "link").symlink_to(real / "a")
    async with holdfast.open(f"sqlite://{real}/store.db") as hf:
        assert (await hf.trust.decisions()).about(inner) is None
        await hf.trust.decide(real / "link", granted=True)
        await hf.trust.decide(real / "a/b", granted=False)
    async with holdfast.open(f"sqlite://{real}/store.db") as hf:
        found = await hf.trust.decisions()
        assert [(each.path, each.granted) for each in found.all] == [
            (f"{real}/a", True),
            (f"{real}/a/b", False),
        ]
        assert [found.about(path) for path in (real / "a", real / "link", inner, other)] == [
            True,
            True,
            False,
            None,
        ]
        assert [found.grant(path) for path in (real / "a", inner, other)] == [
            Grant(real / "a", {".": {}}),
            False,
            False,
        ]
        await hf.trust.decide(real / "a/b", granted=True)
        assert (await hf.trust.decisions()).grant(inner) == Grant(real / "a/b", {".": {}})
        assert len((await hf.trust.decisions()).all) == 2


async def test_what_is_no_project_cannot_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing, a file, everything, and the whole home directory."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "file").write_text("x")
    async with holdfast.open(f"sqlite://{tmp_path}/store.db") as hf:
        for path in ("", "a\0b", str(tmp_path / "none"), str(tmp_path / "file")):
            with pytest.raises(InvalidInput, match="is not a directory"):
                await hf.trust.decide(path, granted=True)
        for path in (os.path.sep, str(tmp_path / "home"), str(tmp_path / "home/../home")):
            with pytest.raises(Refused, match="holds far more than one project"):
                await hf.trust.decide(path, granted=True)
