"""The files of a project are watched: not git's own, not what it ignores, and nothing outside."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.location import file_watch, watched_tree, write_path
from holdfast.location.watched_tree import WatchedTree
from tests.until import until


class Watch:
    """A watch in a thread; `seen` is what it published, by the path below the top."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.seen: list[tuple[str, str]] = []
        self.warned: list[str] = []

    def publish(self, events: list[tuple[str, file_watch.FileEvent]]) -> None:
        self.seen += [(str(Path(path).relative_to(self.top)), event) for path, event in events]

    async def shows(self, *events: tuple[str, str]) -> None:
        """Return when these were published since the last look, and nothing about any other file.

        A file that is made may be published as changed too, if its content comes a round later.
        """
        await until(lambda: set(events) <= set(self.seen))
        assert {path for path, _ in self.seen} == {path for path, _ in events}
        self.seen.clear()


@asynccontextmanager
async def watching(top: Path, *ignore: str) -> AsyncIterator[Watch]:
    watch, stop, ready = Watch(top), threading.Event(), top / "ready"
    thread = threading.Thread(
        target=file_watch.watch, args=(top, ignore, stop, watch.publish, watch.warned.append)
    )
    thread.start()
    try:
        with anyio.fail_after(20):
            while not watch.seen:  # The first event says that it has begun.
                ready.write_text("x")
                await anyio.sleep(0.02)
        ready.unlink()
        await until(lambda: ("ready", "unlink") in watch.seen)
        watch.seen.clear()
        yield watch
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("found", "is_there", "event"),
    [
        ({"add"}, True, "add"),
        ({"change"}, False, "change"),
        ({"unlink"}, True, "unlink"),
        ({"add", "change"}, True, "add"),
        ({"add", "change"}, False, "add"),
        ({"change", "unlink"}, False, "unlink"),
        ({"add", "change", "unlink"}, False, "unlink"),
        ({"add", "unlink"}, True, "change"),
        ({"change", "unlink"}, True, "change"),
    ],
)
def test_several_changes_of_one_round_are_one_event(
    found: set[file_watch.FileEvent], is_there: bool, event: str
) -> None:
    """A file that was changed and removed is gone, whichever of the two comes last out of a set."""
    assert file_watch.event(found, is_there=is_there) == event


@pytest.mark.ci
async def test_files_that_come_change_and_go_are_published(tmp_path: Path) -> None:
    """Also in folders that come later, however quickly they are filled."""
    (tmp_path / "sub").mkdir()
    async with watching(tmp_path) as watch:
        (tmp_path / "sub" / "a").write_text("1")
        await watch.shows(("sub/a", "add"))
        (tmp_path / "sub" / "a").write_text("2")
        await watch.shows(("sub/a", "change"))
        (tmp_path / "sub" / "a").unlink()
        await watch.shows(("sub/a", "unlink"))
        (tmp_path / "new" / "deep").mkdir(parents=True)
        (tmp_path / "new" / "deep" / "b").write_text("1")
        await watch.shows(("new/deep/b", "add"))
        (tmp_path / "new" / "deep" / "b").write_text("2")
        await watch.shows(("new/deep/b", "change"))
    assert watch.warned == []


@pytest.mark.ci
async def test_what_git_ignores_and_what_lies_outside_is_not(tmp_path: Path) -> None:
    """Also what a link leads to, and the temporary files of our own writes."""
    top, outside = tmp_path / "top", tmp_path / "outside"
    for folder in (top / ".git", top / "build", top / "src", outside):
        folder.mkdir(parents=True)
    (top / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n")
    (top / "link").symlink_to(outside)
    async with watching(top, "notes") as watch:
        hidden = [".git/index", "build/a", "src/a.log", "notes", f"src/{write_path.TEMPORARY}x"]
        for name in hidden:
            (top / name).write_text("1")
        (outside / "secret").write_text("1")
        (top / "src" / "keep.log").write_text("1")
        await watch.shows(("src/keep.log", "add"))
        (top / ".gitignore").write_text("")
        await watch.shows((".gitignore", "change"), ("build/a", "add"))
        (top / "build" / "b").write_text("1")
        await watch.shows(("build/b", "add"))


@pytest.mark.ci
async def test_a_round_publishes_a_bounded_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is dropped; the next round is complete again."""
    monkeypatch.setattr(file_watch, "EVENTS_MAX", 3)
    top, many = tmp_path / "top", tmp_path / "many"
    for folder in (top, many):
        folder.mkdir()
    for number in range(9):
        (many / f"{number}").write_text("1")
    async with watching(top) as watch:
        many.rename(top / "many")
        await until(lambda: watch.seen)
        assert len(watch.seen) == 3
        watch.seen.clear()
        (top / "one").write_text("1")
        await watch.shows(("one", "add"))


def test_only_so_many_folders_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outer ones; who watches learns that there are more."""
    for name in ("a/b/c", "d"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(watched_tree, "FOLDERS_MAX", 3)
    assert WatchedTree(tmp_path).folders() == ([str(tmp_path / name) for name in ("", "a", "d")], False)


RULES: list[tuple[str, str, bool]] = [
    ("*.log", "a.log", True),
    ("*.log", "sub/a.log", True),
    ("/a", "sub/a", False),
    ("sub/", "sub/a", True),
    ("[", "a", False),
    ("", "sub/node_modules", True),
]


@pytest.mark.parametrize(("rule", "path", "ignored"), RULES)
def test_git_s_rules_hold(tmp_path: Path, rule: str, path: str, ignored: bool) -> None:
    """Of the nearest folder that has one."""
    (tmp_path / ".gitignore").write_text(rule)
    assert WatchedTree(tmp_path).ignores(str(tmp_path / path)) is ignored


def test_a_nearer_rule_wins_and_a_link_is_not_read(tmp_path: Path) -> None:
    """Rules that a link brings from elsewhere are none."""
    (tmp_path / "sub").mkdir()
    (tmp_path / ".gitignore").write_text("*.log")
    (tmp_path / "sub" / ".gitignore").write_text("!a.log")
    tree = WatchedTree(tmp_path)
    assert [tree.ignores(str(tmp_path / "sub" / name)) for name in ("a.log", "b.log")] == [False, True]
    (tmp_path / ".gitignore").unlink()
    (tmp_path / "rules").write_text("*")
    (tmp_path / ".gitignore").symlink_to("rules")
    assert not WatchedTree(tmp_path).ignores(str(tmp_path / "a"))


async def test_what_cannot_be_watched_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may have no room for another watch; nothing is raised."""
    warned: list[str] = []

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("watchfiles._rust_notify.RustNotify", refuse)
    publish: Callable[..., None] = lambda _: pytest.fail("published")  # noqa: E731 - short
    file_watch.watch(tmp_path, (), threading.Event(), publish, warned.append)
    assert warned == [f"the files of {tmp_path} are not watched: [Errno 28] No space left on device"]
