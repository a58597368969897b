"""A trusted folder counts as long as it is what it was."""

from pathlib import Path

import pytest

from holdfast.config.load import load
from holdfast.config.loaded import Loaded
from holdfast.config.pins.pinned import pinned
from holdfast.config.pins.project_trust import Grant
from tests.config.world import World, write


class Trusting:
    """A world whose user trusts a folder as it was when this was made."""

    def __init__(self, world: World, folder: Path | None = None) -> None:
        self.world = world
        folder = folder or world.project
        taken = pinned(folder, world.home)
        self.grant = Grant(folder, {place: each.pins for place, each in taken.items()})

    def granted(self, path: Path) -> Grant | bool:
        """What the user decided."""
        return path.is_relative_to(self.grant.folder) and self.grant

    def load(self) -> Loaded:
        """The settings as they are now."""
        return load(self.world.places, trusted=self.granted)


def changed(loaded: Loaded) -> list[str]:
    """What is not as it was."""
    return [str(change) for each in loaded.trust.changed for change in each.changes]


@pytest.fixture
def trusting(world: World) -> Trusting:
    write(world.project / "opencode.json", {"model": "a/b", "username": "{file:name.txt}"})
    write(world.project / "name.txt", "me")
    write(world.project / ".holdfast/agents/helper.md", "Help.")
    write(world.sub / "holdfast.json", {"small_model": "a/c"})
    return Trusting(world)


def test_what_is_as_it_was_counts(trusting: Trusting) -> None:
    """The folder and the places below it."""
    loaded = trusting.load()
    assert (changed(loaded), loaded.notices) == ([], ())
    found = loaded.config
    assert (found.model, found.small_model, found.username) == ("a/b", "a/c", "me")


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("opencode.json", '{"model": "evil/x"}', ["name.txt (removed)", "opencode.json"]),
        ("name.txt", "evil", ["name.txt"]),
        ("opencode.json", None, ["name.txt (removed)", "opencode.json (removed)"]),
        (".holdfast/agents/helper.md", "Harm.", [".holdfast/agents/helper.md"]),
        (".holdfast/plugins/evil.py", "evil", [".holdfast/plugins/evil.py (added)"]),
        (".holdfast/tools/evil.py", "evil", [".holdfast/tools/evil.py (added)"]),
        (".opencode/opencode.jsonc", "{}", [".opencode/opencode.jsonc (added)"]),
    ],
)
def test_what_changed_makes_it_count_as_untrusted(
    trusting: Trusting, path: str, text: str | None, said: list[str]
) -> None:
    """Changed, added and removed files; other folders of the project still count. One notice names the files
    and the commands.
    """
    world = trusting.world
    (world.project / path).unlink() if text is None else write(world.project / path, text)

    loaded = trusting.load()

    assert changed(loaded) == said
    assert (loaded.config.model, loaded.config.small_model, loaded.config.username) == (None, "a/c", None)
    notice = (
        f"{world.project} changed since it was trusted, and counts as not trusted: {', '.join(said)}; see "
        f"`holdfast trust --diff {world.project}`, then `holdfast trust {world.project}`"
    )
    assert [each for each in loaded.notices if "trusted" in each] == [notice]
    assert [each.trusted for each in loaded.folders if each.path.parent == world.project] == [False] * len(
        [name for name in (".opencode", ".holdfast") if (world.project / name).is_dir()]
    )
    assert not loaded.trust.holds(world.project)
    assert loaded.trust.holds(world.sub)


def test_a_folder_that_came_below_a_trusted_one_is_asked_about(trusting: Trusting) -> None:
    """A nested place that was not there has no pins."""
    write(trusting.world.sub / ".holdfast/plugins/new.py", "x")
    loaded = trusting.load()
    assert changed(loaded) == ["sub/.holdfast/plugins/new.py (added)"]
    assert (loaded.config.model, loaded.config.small_model) == ("a/b", None)


def test_what_cannot_be_compared_does_not_count(trusting: Trusting) -> None:
    """And stops nobody: the notice says why."""
    (trusting.world.project / ".holdfast/agents/huge.md").write_bytes(b"x" * 1_048_577)
    loaded = trusting.load()
    assert loaded.config.model is None
    assert "agents/huge.md is larger than" in loaded.notices[-1]


def test_a_grant_without_pins_is_none(world: World) -> None:
    """As of an earlier version: whatever is there came since."""
    write(world.project / "opencode.json", {"model": "a/b"})
    loaded = load(world.places, trusted=lambda _: Grant(world.project, {}))
    assert (changed(loaded), loaded.config.model) == (["opencode.json (added)"], None)


def test_settings_that_the_environment_names_have_pins_of_their_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are asked about when they are named, and what is not named now is no change."""
    write(world.sub / "conf/x.json", {"model": "a/b"})
    trusting = Trusting(world)
    assert changed(trusting.load()) == []
    monkeypatch.setenv("HOLDFAST_CONFIG", "conf/x.json")
    loaded = trusting.load()
    assert (changed(loaded), loaded.config.model) == (["sub/conf/x.json (added)"], None)


def test_check_and_load_see_the_same_bytes(trusting: Trusting, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is swapped right after the comparison changes nothing of what is loaded."""
    from holdfast.config import places

    world = trusting.world
    of_user = places.of_user

    def swap(where: places.Places) -> list[places.Folder]:
        write(world.project / "opencode.json", {"model": "evil/x"})
        write(world.project / "name.txt", "evil")
        write(world.project / ".holdfast/agents/helper.md", "Harm.")
        write(world.project / ".holdfast/agents/new.md", "Harm.")
        return of_user(where)

    monkeypatch.setattr(places, "of_user", swap)
    found = trusting.load()
    assert found.value == {
        "model": "a/b",
        "username": "me",
        "agent": {"helper": {"prompt": "Help."}},
        "small_model": "a/c",
    }
    monkeypatch.undo()
    assert trusting.load().config.model is None
