"""Instruction files: which one counts, what lies beside a file that was read, and bounded reading."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import HoldfastError, NotFound, Refused
from holdfast.location import instruction_files
from holdfast.location.instruction_files import Excerpt


class World:
    """A checkout with a session in `app`, and a folder outside."""

    def __init__(self, root: Path) -> None:
        self.top = root / "project"
        self.app = self.top / "app"
        self.outside = root / "outside"
        for folder in (self.app, self.outside):
            folder.mkdir(parents=True)

    def put(self, path: str, text: str = "do so") -> Path:
        made = self.top / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text, encoding="utf-8")
        return made

    def beside(self, path: str, *known: Path) -> list[Path]:
        return instruction_files.beside(self.top / path, directory=self.app, worktree=self.top, known=known)

    def read(self, path: Path, *, contained: bool = True, bytes_max: int = 1000) -> Excerpt:
        return instruction_files.read(path, worktree=self.top, contained=contained, bytes_max=bytes_max)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path.resolve())


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [os.mkfifo, make_socket, Path.mkdir, lambda path: path.symlink_to(path)])
def test_what_is_no_file_does_not_count(
    world: World, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe, a socket, a folder or a link to itself by the name of an instruction file is passed over."""
    monkeypatch.chdir(world.top)  # The path of a socket must be short.
    make(Path("AGENTS.md"))
    other = world.put("CLAUDE.md")

    assert instruction_files.first_in(world.top) == other


def test_a_passing_failure_is_no_absence(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails is an error: nobody may conclude that the instructions are gone."""

    def fails(self: Path, **_: object) -> os.stat_result:
        raise OSError(errno.EIO, "Input/output error", str(self))

    monkeypatch.setattr(Path, "stat", fails)

    with pytest.raises(OSError, match="Input/output"):
        instruction_files.first_in(world.top)


def test_the_first_name_counts(world: World) -> None:
    """In one folder AGENTS.md comes before CLAUDE.md, and that before CONTEXT.md."""
    found = []
    for name in ("CONTEXT.md", "CLAUDE.md", "AGENTS.md"):
        world.put(name)
        found.append(instruction_files.first_in(world.top))

    assert found == [world.top / name for name in ("CONTEXT.md", "CLAUDE.md", "AGENTS.md")]
    assert instruction_files.first_in(world.app) is None


def test_what_is_not_allowed_is_passed_over(world: World) -> None:
    """The next name counts in its place."""
    world.put("AGENTS.md")
    other = world.put("CLAUDE.md")

    assert instruction_files.first_in(world.top, lambda path: path.name != "AGENTS.md") == other


def test_the_first_file_of_the_user_that_exists_counts(tmp_path: Path) -> None:
    """Our AGENTS.md, else OpenCode's, else Claude's file, as OpenCode does: never two of them."""
    ours, theirs = tmp_path / ".config/holdfast", tmp_path / ".config/opencode"
    claude = tmp_path / ".claude"
    for folder in (ours, theirs, claude):
        folder.mkdir(parents=True)

    def found() -> list[Path]:
        return instruction_files.personal(holdfast_config=ours, opencode_config=theirs, home=tmp_path)

    assert found() == []
    (theirs / "AGENTS.md").write_text("theirs")
    (claude / "CLAUDE.md").write_text("claude")
    assert found() == [theirs / "AGENTS.md"]
    (ours / "AGENTS.md").write_text("ours")
    assert found() == [ours / "AGENTS.md"]
    for folder in (ours, theirs):
        (folder / "AGENTS.md").unlink()
    assert found() == [claude / "CLAUDE.md"]


def test_beside_finds_what_lies_between(world: World) -> None:
    """Below the session's directory each folder down to the file is looked at, the outermost first."""
    for path in ("AGENTS.md", "app/AGENTS.md"):
        world.put(path)
    outer = world.put("app/a/CLAUDE.md")
    inner = world.put("app/a/b/c/CONTEXT.md")
    world.put("app/a/b/c/d/AGENTS.md")
    world.put("app/a/b/c/code.py")

    assert world.beside("app/a/b/c/code.py") == [outer, inner]
    assert world.beside("app/a/b/c") == [outer, inner]
    assert world.beside("app/code.py") == []
    assert world.beside("code.py") == []


def test_beside_looks_into_neighbours(world: World) -> None:
    """A file beside the session's directory has its own folders, up to the way that both share."""
    world.put("AGENTS.md")
    found = world.put("lib/AGENTS.md")
    world.put("lib/x/code.py")

    assert world.beside("lib/x/code.py") == [found]


def test_beside_leaves_out_what_is_known(world: World) -> None:
    """By real path: what a link leads to is known under every name; a file that was read tells itself."""
    known = world.put("app/a/AGENTS.md")
    (world.app / "b").mkdir()
    (world.app / "b/AGENTS.md").symlink_to(known)
    own = world.put("app/c/AGENTS.md")

    assert world.beside("app/a/x", known) == []
    assert world.beside("app/b/x", known) == []
    assert world.beside("app/b/x") == [world.app / "b/AGENTS.md"]
    assert world.beside("app/c/AGENTS.md") == []
    assert world.beside("app/c/other.py") == [own]


def test_beside_stays_in_the_worktree(world: World) -> None:
    """Neither a file that leads out, nor a folder that does, nor a path outside gives anything."""
    (world.outside / "AGENTS.md").write_text("secret")
    (world.outside / "x").write_text("x")
    (world.app / "a").mkdir()
    (world.app / "a/AGENTS.md").symlink_to(world.outside / "AGENTS.md")
    (world.app / "out").symlink_to(world.outside)

    assert world.beside("app/a/x") == []
    assert world.beside("app/out/x") == []
    assert world.beside("../outside/x") == []


@pytest.mark.parametrize("folder", [".git", "node_modules", "site-packages"])
def test_beside_ignores_code_of_others(world: World, folder: str) -> None:
    """What a package brings was not written for this project."""
    world.put(f"app/{folder}/p/AGENTS.md")

    assert world.beside(f"app/{folder}/p/x.js") == []


@pytest.mark.parametrize("name", ["HOLDFAST_DISABLE_PROJECT_CONFIG", "OPENCODE_DISABLE_PROJECT_CONFIG"])
def test_beside_can_be_switched_off(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The flag that leaves out a project's settings leaves out its nested instructions."""
    world.put("app/a/AGENTS.md")
    monkeypatch.setenv(name, "1")

    assert world.beside("app/a/x") == []


def test_reading_refuses_what_leads_out(world: World) -> None:
    """A contained file must lie in the worktree when it is opened; without that it may lie anywhere."""
    secret = world.outside / "secret"
    secret.write_text("secret")
    link = world.top / "AGENTS.md"
    link.symlink_to(secret)

    with pytest.raises(Refused, match="leads out"):
        world.read(link)
    assert world.read(link, contained=False) == Excerpt("secret", 6, 6)


def test_reading_what_is_gone_is_an_error(world: World) -> None:
    """So is a pipe in its place, which is never opened."""
    path = world.top / "AGENTS.md"
    with pytest.raises(NotFound):
        world.read(path)
    os.mkfifo(path)
    with pytest.raises(HoldfastError, match="named pipe"):
        world.read(path)


def test_reading_is_bounded_and_says_so(world: World) -> None:
    """A long file is cut between two characters, with a note of how much is shown."""
    path = world.put("AGENTS.md", "é" * 600)
    cut = world.read(path, bytes_max=1001)

    assert cut == Excerpt("é" * 500, 1001, 1200)
    assert cut.shown == "é" * 500 + "\n[Cut here: the first 1,001 of 1,200 bytes are shown.]"
    assert world.read(path, bytes_max=1200) == Excerpt("é" * 600, 1200, 1200)
    assert world.read(path, bytes_max=0).shown == "[Cut here: the first 0 of 1,200 bytes are shown.]"


def test_reading_gives_text_that_can_be_recorded(world: World) -> None:
    """A byte order mark is dropped, and what is no UTF-8, or NUL, is shown as unreadable."""
    path = world.top / "AGENTS.md"
    path.write_bytes(b"\xef\xbb\xbf a\xffb\0c \n")

    assert world.read(path).text == "a\ufffdb\ufffdc"
