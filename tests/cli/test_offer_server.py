"""Offering a model server that already runs: what is kept of a yes, and what is said where nobody sits."""

import json
from pathlib import Path

import pytest

from holdfast.cli.run import offer_server
from holdfast.person import directories
from holdfast.provider.local import catalogue, installable
from holdfast.provider.local.discover import Found, FoundModel
from tests.cli.conftest import Shell


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "own"))


OLLAMA = Found(kind="ollama", port=11434, models=(FoundModel(id="qwen3:8b", context=40_960),))


def test_a_yes_becomes_a_setting_where_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """The file is the person's from then on."""
    assert offer_server._keep(OLLAMA)

    settings = json.loads((directories.config() / "holdfast.json").read_text())
    assert settings["provider"]["ollama"]["options"] == {"baseURL": "http://127.0.0.1:11434/v1"}
    assert list(settings["provider"]["ollama"]["models"]) == ["qwen3:8b"]
    assert "Ollama is in" in capsys.readouterr().err


def test_a_file_that_somebody_wrote_is_theirs_to_edit(capsys: pytest.CaptureFixture[str]) -> None:
    """The lines are shown instead."""
    path = directories.config() / "holdfast.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text("{} // mine\n")

    assert not offer_server._keep(OLLAMA)

    assert path.read_text() == "{} // mine\n"
    assert not (directories.config() / "holdfast.json").exists()
    assert '"baseURL": "http://127.0.0.1:11434/v1"' in capsys.readouterr().err


def test_an_installed_model_without_the_extra_is_told_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """To install it again would not help."""
    monkeypatch.setattr(catalogue, "has_extra", lambda: False)
    assert (
        offer_server.small_model()
        == "or `holdfast models install smollm2` brings a small model without a key."
    )
    file = installable.file(installable.INSTALLABLE["smollm2"])
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")

    assert offer_server.small_model() == (
        "or `pip install 'holdfast[local]'` brings what smollm2 needs, which is installed."
    )


@pytest.mark.ci
def test_without_a_provider_a_command_says_in_three_lines_how_to_go_on(tmp_path: Path) -> None:
    """And asks nothing where nobody sits."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    shell = Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{tmp_path}/store.db")

    done = shell("run", "hello")

    assert (done.code, done.out) == (1, "")
    lines = done.err.splitlines()
    assert [word in line for word, line in zip(("login", "discover", "install"), lines, strict=False)] == [
        True
    ] * 3
    assert len(lines) == 4
