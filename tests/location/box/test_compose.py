"""A policy is made from places and settings: every path real, our own folders hidden, no foolish worktree."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from holdfast.errors import ContextError
from holdfast.location.box.compose import BoxPlaces, compose
from holdfast.location.box.policy import BoxPolicy, CacheLayer
from holdfast.location.box.secrets import LOOKUPS
from holdfast.schema.config import SandboxConfig


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "home"
    for name in (".ssh", ".cache", "data/output", "config/skills", "project", "state", "run"):
        (made / name).mkdir(parents=True)
    (made / ".npmrc").touch()
    return made


def places(home: Path, worktree: Path) -> BoxPlaces:
    return BoxPlaces(
        worktree=worktree,
        home=home,
        own=(home / "data", home / "config", home / "absent"),
        readable=(home / "data" / "output", home / "config" / "skills", home / "project" / "skills"),
        temporary=home / "state",
        runtime=home / "run",
        caches=home / "state" / "caches",
    )


def text(*paths: Path) -> tuple[str, ...]:
    return tuple(map(str, paths))


def test_the_default(home: Path) -> None:
    """The worktree is writable; ours, known secrets and sockets are hidden; managed output stays readable."""
    found = compose(places(home, home / "project"), SandboxConfig(), mode="workspace")

    (layer,) = found.caches
    assert (layer.path, Path(layer.kept or "").parent) == (str(home / ".cache"), home / "state" / "caches")
    assert found == BoxPolicy(
        mode="workspace",
        write=text(home / "project"),
        temporary=str(home / "state"),
        caches=(layer,),
        hidden=text(home / "data", home / "config", home / ".ssh", home / ".npmrc", home / "run"),
        revealed=text(home / "data" / "output", home / "config" / "skills"),
        sockets=LOOKUPS,
    )


def test_read_only_keeps_nothing(home: Path) -> None:
    """No worktree, and what is written to a cache is gone with the command."""
    found = compose(places(home, home / "project"), SandboxConfig(write=["~/open"]), mode="read-only")

    assert (found.write, found.caches) == ((), (CacheLayer(str(home / ".cache")),))
    assert found.revealed[0] == str(home / "project")


def test_settings(home: Path) -> None:
    """Paths may begin with `~`; links are resolved; what is not there, or relative, names nothing."""
    (home / "open").mkdir()
    (home / "link").symlink_to(home / "open")
    (home / "secret").touch()

    found = compose(
        places(home, home / "project"),
        SandboxConfig(
            network=True,
            write=["~/link", "relative", "/no/such/folder"],
            hide=["~/secret"],
            reveal=["~/.npmrc"],
            caches=[],
            sockets=["~/run"],
        ),
        mode="workspace",
    )

    assert found.network
    assert found.write == text(home / "project", home / "open")
    assert found.hidden == text(home / "data", home / "config", home / ".ssh", home / "run", home / "secret")
    assert found.caches == ()
    assert found.sockets == (str(home / "run"), *LOOKUPS)


def test_what_leads_to_something_hidden_is_pinned(home: Path) -> None:
    """Renamed by one command, a folder would show the next one what is hidden in it."""
    project = home / "project"
    (project / "a" / "b").mkdir(parents=True)
    (project / "a" / "b" / ".env").touch()
    settings = SandboxConfig(hide=["~/project/a/b/.env"])

    found = compose(places(home, project), settings, mode="workspace")

    assert set(found.pinned) == {str(project / "a"), str(project / "a" / "b")}
    assert compose(places(home, project), settings, mode="read-only").pinned == ()


def test_our_own_folders_cannot_be_revealed(home: Path) -> None:
    """Whoever can read them has every key, and could answer a question that was put to the user."""
    (home / "data" / "auth.json").touch()

    found = compose(
        places(home, home / "project"),
        SandboxConfig(reveal=["~/data", "~/data/auth.json", "~/config"]),
        mode="workspace",
    )

    assert [found.access(str(home / name)) for name in ("data/auth.json", "config/x")] == ["none", "none"]


def test_a_store_elsewhere_is_hidden_with_what_lies_beside_it(home: Path) -> None:
    """Also in the worktree, and whatever is revealed."""
    for name in ("my.db", "my.db-wal", "my.db-backups", "other.db"):
        (home / "project" / name).touch()
    where = msgspec.structs.replace(places(home, home / "project"), store=home / "project" / "my.db")

    found = compose(where, SandboxConfig(reveal=["~/project/my.db"]), mode="workspace")

    names = ("my.db", "my.db-wal", "my.db-backups", "other.db")
    accesses = [found.access(str(home / "project" / name)) for name in names]
    assert accesses == ["none", "none", "none", "write"]


@pytest.mark.parametrize(
    ("worktree", "why"),
    [
        ("/", "it is the whole machine"),
        ("home", "it is your home directory"),
        ("above home", "your home directory lies in it"),
        ("data", "Holdfast's own files lie in it"),
        ("link to home", "it is your home directory"),
    ],
)
def test_a_worktree_that_holds_too_much_is_refused(home: Path, worktree: str, why: str) -> None:
    """The reason is one line, with what to do instead."""
    (home.parent / "link").symlink_to(home)
    made = {
        "/": Path("/"),
        "home": home,
        "above home": home.parent,
        "data": home / "data",
        "link to home": home.parent / "link",
    }

    with pytest.raises(ContextError, match=why):
        compose(places(home, made[worktree]), SandboxConfig(), mode="workspace")


def test_what_lies_in_the_covered_temporary_folder_can_be_revealed(tmp_path: Path) -> None:
    """A tool chain under /tmp, for example; what lies elsewhere is seen in any case."""
    worktree, home = tmp_path / "work", tmp_path / "home"
    for folder in (worktree, home):
        folder.mkdir()
    with TemporaryDirectory(dir="/tmp") as tools:
        settings = SandboxConfig(reveal=[tools, "/usr"])
        found = compose(BoxPlaces(worktree=worktree, home=home, own=()), settings, mode="workspace")
        assert found.revealed == (tools,)
