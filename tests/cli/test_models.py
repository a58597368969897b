"""`holdfast models`: what a person types and what comes back."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """No store is touched, so one is enough."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    return Shell(tmp_path / "home", folder, f"sqlite://{tmp_path}/data/store")


@pytest.mark.ci
def test_mistakes_get_one_clear_line(shell: Shell) -> None:
    """A provider that nobody knows, and an option."""
    assert "no provider is called 'opnai'; did you mean openai?" in shell.fails("models", "opnai")
    assert "No such option" in shell.fails("models", "--nope", code=2)


@pytest.mark.ci
def test_without_a_key_nothing_can_be_used(shell: Shell) -> None:
    """A person is told what to do, a program gets an empty array."""
    done = shell("models")
    assert (done.code, done.out) == (0, "")
    assert "No provider can be used yet; `holdfast providers login ID`" in done.err
    assert shell("models", "--format", "json").json() == []


def test_a_provider_can_be_looked_at_before_it_has_a_key(shell: Shell) -> None:
    """Its models are listed, with a word on what is missing."""
    done = shell("models", "google")
    assert "google cannot be used: it has no key; set GOOGLE_API_KEY" in done.err
    row = next(line for line in done.out.splitlines() if line.startswith("google/gemini-2.5-pro "))
    cells = "google/gemini-2.5-pro 1.05M 65.5k 1.25+ 10+ 0.125 ? text audio image pdf video high max"
    assert " ".join(row.split()) == cells


def test_programs_get_everything_as_json(shell: Shell) -> None:
    """An array; an unknown price is null."""
    found = {model["id"]: model for model in shell("models", "google", "--format", "json").json()}
    assert found["google/gemini-2.5-pro"] == {
        "id": "google/gemini-2.5-pro",
        "name": "Gemini 2.5 Pro",
        "provider": "google",
        "available": False,
        "status": "active",
        "wire": "gemini",
        "limit": {"context": 1048576, "output": 65536},
        "price": {"input": 1.25, "output": 10.0, "cache_read": 0.125, "cache_write": None},
        "tiers": [
            {"above": 200000, "input": 2.5, "output": 15.0, "cache_read": 0.25, "cache_write": None},
        ],
        "input": ["audio", "image", "pdf", "text", "video"],
        "output": ["text"],
        "reasoning": True,
        "tool_call": True,
        "variants": ["high", "max"],
    }


@pytest.mark.ci
def test_with_a_key_its_models_are_listed(shell: Shell) -> None:
    """Those of the provider that has one, and all of them when asked."""
    assert shell("providers", "login", "openai", text="sk-x").code == 0
    found = shell("models").out.splitlines()[1:]
    assert found
    assert all(line.startswith("openai/") for line in found)
    assert len(shell("models", "--all").out.splitlines()) > 300


@pytest.mark.ci
def test_refreshing_without_a_network_keeps_the_old_data(shell: Shell) -> None:
    """One line says so, and the list comes all the same."""
    done = subprocess.run(
        [Path(sys.executable).with_name("holdfast"), "models", "openai", "--refresh", "--format", "json"],
        env={"HOME": str(shell.home), "PATH": "", "HOLDFAST_MODELS_URL": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr.startswith("the catalogue cannot be fetched: nothing listens at 127.0.0.1:9")
    assert len(done.stderr.splitlines()) == 1
    assert [model for model in json.loads(done.stdout) if model["id"] == "openai/gpt-5"]
