"""What the settings of a place say reaches those who act by it."""

import json
from pathlib import Path

import pytest

from holdfast.location.project import Location
from holdfast.provider.accounts import credentials
from holdfast.provider.accounts.secret import Secret
from holdfast.workspace.workspace import Workspace, read_workspace

HOST = "models.example"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user with nothing in it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-test")
    (tmp_path / "home/.config/holdfast").mkdir(parents=True)
    return tmp_path / "home"


def around(home: Path, *, vcs: bool = True, **settings: object) -> Workspace:
    """The surroundings of `project/inner`, with these settings of the user."""
    (home / ".config/holdfast/holdfast.json").write_text(json.dumps(settings))
    inner = home.parent / "project" / "inner"
    inner.mkdir(parents=True, exist_ok=True)
    place = Location(str(inner), str(inner.parent), "p", vcs="git" if vcs else None)
    return read_workspace(place, trusted=lambda _: True)


def test_providers_are_those_that_the_settings_leave(home: Path) -> None:
    """`enabled_providers` leaves no others, `disabled_providers` takes some away."""
    found = [
        {each.id for each in around(home, **settings).providers.available()} & {"anthropic", "openai"}  # type: ignore[arg-type]
        for settings in ({}, {"enabled_providers": ["openai"]}, {"disabled_providers": ["openai"]})
    ]

    assert found == [{"anthropic", "openai"}, {"openai"}, {"anthropic"}]


def test_a_provider_at_the_address_of_a_host_gets_the_token_of_that_host(home: Path) -> None:
    """And no other does."""
    credentials.save_token(HOST, "HOST_KEY", Secret("host-token"))
    entries = {
        name: {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": url}}
        for name, url in (("own", f"https://{HOST}/v1"), ("other", "https://other.example/v1"))
    }
    providers = around(home, provider=entries).providers

    keys = [providers.provider(name).key for name in ("own", "other")]
    assert [key and key.reveal() for key in keys] == ["host-token", None]


@pytest.mark.parametrize("vcs", [True, False])
def test_without_a_checkout_only_the_directory_is_the_project(home: Path, vcs: bool) -> None:
    """Settings above it belong to nobody in particular, and agents are told that there is no repository."""
    above = home.parent / "project" / "holdfast.json"
    above.parent.mkdir()
    above.write_text('{"username": "from above"}')
    found = around(home, vcs=vcs)

    assert (found.git, found.loaded.config.username) == ((True, "from above") if vcs else (False, None))
