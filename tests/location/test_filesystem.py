"""What a path means: judged where it leads, by names and not by text, refused where nothing can be read."""

import errno
import os
import socket
from pathlib import Path

import pytest

from holdfast.errors import ContextError, HoldfastError, InvalidInput, NotFound, Refused
from holdfast.location import filesystem, open_path
from holdfast.location.filesystem import Entry, Filesystem, Listing, Resolved


class World:
    """A checkout with a session in one of its folders, and something outside."""

    def __init__(self, top: Path) -> None:
        self.top = top / "project"
        self.root = self.top / "src"
        self.outside = top / "outside"
        for folder in (self.root, self.outside):
            folder.mkdir(parents=True)
        (self.root / "a.txt").write_text("a")
        (self.top / "top.txt").write_text("top")
        (self.outside / "secret.txt").write_text("secret")
        self.files = Filesystem(self.root, self.top)

    def read(self, path: str) -> str:
        with self.files.open(self.files.resolve(path)) as file:
            return file.read().decode()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_plain_file_is_inside(world: World) -> None:
    """The whole judgement; relative to the session's directory, named from the top of the checkout."""
    path = world.root / "a.txt"
    assert world.files.resolve("a.txt") == Resolved(
        asked=path, real=path, inside=True, readable=True, relative="src/a.txt", kind="file"
    )
    assert world.read("a.txt") == "a"
    assert world.read(str(path)) == "a"
    assert world.read("../top.txt") == "top"


@pytest.mark.parametrize("path", ["", "a\0b", "\0"])
def test_what_is_no_path_is_refused(world: World, path: str) -> None:
    """Nothing, and NUL."""
    with pytest.raises(InvalidInput, match="empty, or holds a NUL"):
        world.files.resolve(path)


@pytest.mark.parametrize("path", ["x" * 256, "x" * 5000, "/".join(["x" * 200] * 30), "a/" * 3000])
def test_names_that_are_too_long_are_refused_in_a_short_message(world: World, path: str) -> None:
    """One long name, or a long path."""
    with pytest.raises(InvalidInput, match=r"too long|characters; at most") as caught:
        world.files.resolve(path)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/environ",
        "/proc/self/cwd/a.txt",
        "/proc",
        "/sys/kernel",
        "/dev/null",
        "/dev/zero",
        "/dev/fd/0",
        "/dev/nothing",
        "//dev/null",
        "/tmp/../proc/self/mem",
        "/dev/shm/../null",
    ],
)
def test_the_kernels_own_trees_are_refused(world: World, path: str) -> None:
    """Also where the entry does not exist, and through dots."""
    with pytest.raises(Refused, match="devices and processes"):
        world.files.resolve(path)


def test_a_link_into_the_kernels_trees_is_refused(world: World) -> None:
    """By where it leads; the process's own folder through /proc is plain outside."""
    (world.root / "null").symlink_to("/dev/null")
    (world.root / "env").symlink_to("/proc/self/environ")
    for name in ("null", "env"):
        with pytest.raises(Refused, match="devices and processes"):
            world.files.resolve(name)


def test_pipes_and_sockets_are_refused_without_waiting(world: World) -> None:
    """Also when they take the place of a file after it was judged."""
    os.mkfifo(world.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        # Bound by a relative name, since a socket's path is short.
        before = Path.cwd()
        os.chdir(world.root)
        try:
            server.bind("socket")
        finally:
            os.chdir(before)
    for name, words in [("pipe", "is a named pipe, which"), ("socket", "is a socket, which")]:
        with pytest.raises(Refused, match=words):
            world.files.resolve(name)

    judged = world.files.resolve("a.txt")
    (world.root / "pipe").replace(world.root / "a.txt")
    with pytest.raises(Refused, match="is a named pipe, which is never opened"):
        world.files.open(judged)


def test_a_pipe_swapped_in_at_the_last_moment_does_not_hold_us(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the opening: opened without waiting, recognised, closed."""
    judged = world.files.resolve("a.txt")
    looked = judged.real.stat()
    judged.real.unlink()
    os.mkfifo(judged.real)
    monkeypatch.setattr(os, "stat", lambda *args, **options: looked)
    with pytest.raises(Refused, match="is a named pipe"):
        world.files.open(judged)


@pytest.mark.parametrize("path", ["../../outside/secret.txt", "../../../{name}/outside/secret.txt"])
def test_dots_lead_outside(world: World, path: str) -> None:
    """Wherever they are written."""
    judged = world.files.resolve(path.format(name=world.top.parent.name))
    assert (judged.inside, judged.readable, judged.real) == (False, False, world.outside / "secret.txt")
    assert judged.relative == "../outside/secret.txt"


def test_dots_after_a_link_are_taken_from_where_the_link_leads(world: World) -> None:
    """As the system does it: the text alone would say that this stays inside."""
    (world.root / "link").symlink_to(world.outside)
    judged = world.files.resolve("link/../outside/secret.txt")

    assert judged == Resolved(
        asked=world.root / "outside/secret.txt",
        real=world.outside / "secret.txt",
        inside=False,
        readable=False,
        relative="../outside/secret.txt",
        kind="file",
    )


def test_a_neighbour_with_the_same_beginning_is_outside(world: World) -> None:
    """`/x/project-secrets` is not in `/x/project`."""
    neighbour = world.top.with_name("project-secrets")
    neighbour.mkdir()
    assert not world.files.resolve(str(neighbour)).inside


def test_links_are_judged_by_where_they_lead(world: World) -> None:
    """To a file, a folder, through a chain, outside and back inside."""
    (world.root / "file").symlink_to(world.outside / "secret.txt")
    (world.root / "folder").symlink_to("../../outside")
    (world.root / "chain").symlink_to("folder")
    (world.outside / "back").symlink_to(world.root)

    for path in ("file", "folder/secret.txt", "chain/secret.txt"):
        judged = world.files.resolve(path)
        assert (judged.asked, judged.real, judged.inside) == (
            world.root / path,
            world.outside / "secret.txt",
            False,
        )
    assert world.files.resolve("chain").kind == "folder"
    assert world.files.resolve("chain/back/a.txt").inside
    assert world.read("chain/back/a.txt") == "a"


def test_a_loop_of_links_is_refused(world: World) -> None:
    """One that names itself, and two that name one another."""
    (world.root / "self").symlink_to("self")
    (world.root / "one").symlink_to("two")
    (world.root / "two").symlink_to("one")
    for path in ("self", "one", "one/x"):
        with pytest.raises(InvalidInput, match="leads back to itself"):
            world.files.resolve(path)


def test_what_is_missing_is_judged_by_where_it_would_be(world: World) -> None:
    """A dangling link by its target, a name under a file too; opening says that it does not exist."""
    (world.root / "dangling").symlink_to(world.outside / "none.txt")
    for path, real, inside in [
        ("none.txt", world.root / "none.txt", True),
        ("none/deep.txt", world.root / "none/deep.txt", True),
        ("dangling", world.outside / "none.txt", False),
        ("a.txt/x", world.root / "a.txt/x", True),
    ]:
        judged = world.files.resolve(path)
        assert (judged.real, judged.inside, judged.kind) == (real, inside, "missing")
        with pytest.raises(HoldfastError, match=r"does not exist|was replaced"):
            world.files.open(judged)
    with pytest.raises(NotFound, match=r"none\.txt does not exist$"):
        world.files.open(world.files.resolve("none.txt"))


def test_names_that_are_not_utf8_are_refused_and_listed_readably(world: World) -> None:
    """No record could hold them."""
    name = os.fsdecode(b"caf\xe9")
    (world.root / name).touch()
    (world.root / "link").symlink_to(name)
    for path in (name, "link"):
        with pytest.raises(InvalidInput, match="is not UTF-8"):
            world.files.resolve(path)
    assert (
        Entry("caf\N{REPLACEMENT CHARACTER}", folder=False)
        in world.files.list(world.files.resolve(".")).entries
    )


def test_without_a_checkout_only_the_directory_is_the_project(world: World) -> None:
    """A worktree of `/` does not open the whole machine."""
    files = Filesystem(world.root, Path("/"))
    assert files.resolve("a.txt").relative == "a.txt"
    assert not files.resolve("../top.txt").inside


def test_a_link_in_the_place_of_the_project_makes_everything_outside(world: World) -> None:
    """The judgement holds on to the real place that the session was opened in."""
    world.root.rename(world.root.with_name("moved"))
    world.root.symlink_to(world.outside)
    assert not world.files.resolve("secret.txt").inside


def test_readable_folders_are_open_and_still_outside(world: World, tmp_path: Path) -> None:
    """Also by a name that is a link; their neighbours are not."""
    (tmp_path / "short").symlink_to(world.outside)
    files = Filesystem(world.root, world.top, readable=[tmp_path / "short"])
    judged = files.resolve(str(world.outside / "secret.txt"))
    assert (judged.inside, judged.readable) == (False, True)
    (world.outside / "out").symlink_to(tmp_path)
    assert not files.resolve(str(world.outside / "out")).readable


def test_closed_folders_are_refused_even_inside(world: World) -> None:
    """Except for what is readable in them."""
    kept = world.root / "data" / "kept"
    kept.mkdir(parents=True)
    files = Filesystem(world.root, world.top, readable=[kept], closed=[world.root / "data"])
    (world.root / "link").symlink_to("data")
    for path in ("data", "data/store.db", "link/store.db"):
        with pytest.raises(Refused, match="belongs to Holdfast itself"):
            files.resolve(path)
    assert files.resolve("data/kept/x").readable


def test_rules_hear_every_name_of_a_path(world: World) -> None:
    """As asked and as resolved; outside also absolute."""
    (world.root / "link").symlink_to("a.txt")
    (world.root / "out").symlink_to(world.outside)
    secret = str(world.outside / "secret.txt")
    for path, patterns in [
        ("a.txt", ("src/a.txt",)),
        ("link", ("src/link", "src/a.txt")),
        ("out/secret.txt", ("src/out/secret.txt", "../outside/secret.txt", secret)),
        (secret, ("../outside/secret.txt", secret)),
        (str(world.top), (".",)),
    ]:
        assert world.files.patterns(world.files.resolve(path)) == patterns


def test_a_folder_is_listed_in_order(world: World) -> None:
    """Links that lead to folders count as such; broken ones do not."""
    (world.root / "b").mkdir()
    (world.root / "c").symlink_to("b")
    (world.root / "d").symlink_to("nowhere")
    (world.root / "e").symlink_to("e")
    assert world.files.list(world.files.resolve(".")) == Listing(
        (Entry("a.txt", False), Entry("b", True), Entry("c", True), Entry("d", False), Entry("e", False)),
        True,
    )
    assert world.files.list(world.files.resolve("/")).complete


def test_a_huge_folder_is_listed_in_part(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so."""
    monkeypatch.setattr(filesystem, "ENTRIES_MAX", 2)
    for name in "bcd":
        (world.root / name).touch()
    listing = world.files.list(world.files.resolve("."))
    assert (len(listing.entries), listing.complete) == (2, False)


def test_a_hard_link_counts_where_it_lies(world: World) -> None:
    """Documented: nothing tells it from the file, and to make it takes access to the file already."""
    os.link(world.outside / "secret.txt", world.root / "hard")
    assert world.files.resolve("hard").inside
    assert world.read("hard") == "secret"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOENT, NotFound),
        (errno.ELOOP, Refused),
        (errno.ENOTDIR, Refused),
        (errno.EACCES, Refused),
        (errno.EPERM, Refused),
        (errno.EIO, ContextError),
    ],
)
def test_what_the_system_says_becomes_an_error_of_ours(number: int, kind: type[HoldfastError]) -> None:
    """Missing, a link, no folder, not allowed, anything else."""
    assert type(open_path.failure(OSError(number, os.strerror(number)), Path("/x"))) is kind
