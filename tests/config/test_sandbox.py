"""Settings of the box: the user's own files decide, a project's only tighten, trusted or not."""

from pathlib import Path

import msgspec
import pytest

from holdfast.config.untrusted.well_known import Remote
from holdfast.permission import from_config
from holdfast.schema.config import SandboxConfig
from holdfast.schema.permission import Rule
from tests.config.world import World, write

LOOSE = {
    "mode": "off",
    "network": True,
    "write": ["/"],
    "reveal": ["~/.ssh"],
    "caches": ["/etc"],
    "sockets": ["/run/docker.sock"],
    "require": False,
}
TIGHT = {"mode": "read-only", "network": False, "hide": [".env", "~/notes"], "require": True}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_users_own_settings_are_taken(world: World) -> None:
    """Every one of them."""
    write(world.ours / "holdfast.json", {"sandbox": {**LOOSE, "hide": ["~/notes"]}})

    assert world.load().config.sandbox == msgspec.convert({**LOOSE, "hide": ["~/notes"]}, SandboxConfig)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("place", ["holdfast.json", "sub/opencode.json", ".holdfast/holdfast.json"])
def test_a_project_loosens_nothing(world: World, place: str, trusted: bool) -> None:
    """Each key that would is named."""
    write(world.project / place, {"sandbox": LOOSE})

    loaded = world.load(trusted=trusted)

    assert loaded.config.sandbox is None
    assert all(any(f"sandbox.{key}" in line for line in loaded.notices) for key in LOOSE), loaded.notices


@pytest.mark.parametrize("trusted", [True, False])
def test_a_project_tightens(world: World, trusted: bool) -> None:
    """Over what the user loosened; a relative path is one of the project."""
    write(world.ours / "holdfast.json", {"sandbox": {"mode": "off", "network": True, "hide": ["~/mine"]}})
    write(world.project / "holdfast.json", {"sandbox": TIGHT})

    assert world.load(trusted=trusted).config.sandbox == SandboxConfig(
        mode="read-only", network=False, hide=["~/mine", f"{world.project}/.env", "~/notes"], require=True
    )


def test_later_layers_of_the_user_do_not_undo_a_project(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is the user's and decides before the project tightens."""
    write(world.project / "holdfast.json", {"sandbox": {"mode": "read-only"}})
    monkeypatch.setenv("HOLDFAST_CONFIG_CONTENT", '{"sandbox": {"mode": "workspace", "network": true}}')

    assert world.load().config.sandbox == SandboxConfig(mode="read-only", network=True)


def test_a_weaker_mode_changes_nothing(world: World) -> None:
    """`workspace` over `read-only` is no tightening, and over the default it is the same."""
    write(world.ours / "holdfast.json", {"sandbox": {"mode": "read-only"}})
    write(world.project / "holdfast.json", {"sandbox": {"mode": "workspace"}})

    assert world.load().config.sandbox == SandboxConfig(mode="read-only")


def test_a_host_tightens_too(world: World) -> None:
    """It is no more trusted than a project."""
    remote = Remote("example.com", '{"config": {"sandbox": {"network": true, "mode": "read-only"}}}')

    loaded = world.load(remote=(remote,))

    assert loaded.config.sandbox == SandboxConfig(mode="read-only")
    assert any("sandbox.network" in line for line in loaded.notices)


def test_what_the_user_allowed_is_known_apart(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trusted project's permissions count, but are not the user's words."""
    write(world.ours / "holdfast.json", {"permission": {"bash": {"git *": "allow"}}})
    write(world.project / "holdfast.json", {"permission": {"bash": "allow", "unconfined": "allow"}})
    monkeypatch.setenv("HOLDFAST_PERMISSION", '{"edit": "ask"}')

    loaded = world.load()

    assert from_config.rules(loaded.own_permission, "/home") == [
        Rule(permission="bash", pattern="git *", action="allow"),
        Rule(permission="edit", pattern="*", action="ask"),
    ]
    assert loaded.config.permission == {"bash": "allow", "unconfined": "allow", "edit": "ask"}
