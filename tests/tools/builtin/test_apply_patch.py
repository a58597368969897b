"""The tool `apply_patch`: all of a patch or nothing of it."""

import errno
import hashlib
import stat
from pathlib import Path

import anyio
import anyio.from_thread
import pytest

from holdfast.errors import ContextError
from holdfast.location import open_path, write_path
from holdfast.tools.patch import apply
from tests.tools.builtin.changing import World

WHOLE = [
    "*** Add File: new.txt",
    "+one",
    "*** Update File: a.txt",
    "@@",
    " a",
    "-b",
    "+B",
    "*** Update File: old/name.txt",
    "*** Move to: new/name.txt",
    "@@",
    "-x",
    "+y",
    "*** Delete File: gone.txt",
]
UNFIT = "The hunk at line 5 of the patch does not fit a.txt, and nothing was changed."


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def filled(world: World) -> None:
    world.file("a.txt", b"a\r\nb\r\n")
    world.file("old/name.txt", "x\n")
    world.file("gone.txt", "z\n")


async def test_files_are_added_updated_moved_and_deleted(world: World) -> None:
    """One question for all; the metadata says what became of each, and what the session knows of it now."""
    filled(world)
    answer = await world.patch(*WHOLE)
    assert world.content() == {
        "project/a.txt": b"a\r\nB\r\n",
        "project/new.txt": b"one\n",
        "project/new/name.txt": b"y\n",
    }
    assert answer.title == "A new.txt\nM a.txt\nM old/name.txt -> new/name.txt\nD gone.txt"
    assert answer.text == f"Done:\n{answer.title}"
    (asked,) = world.context.asked
    assert asked.permission == "edit"
    assert asked.patterns == ["new.txt", "a.txt", "new/name.txt", "old/name.txt", "gone.txt"]
    files = answer.metadata["files"]
    assert [(each["relativePath"], each["type"], each["sha256"]) for each in files] == [
        ("new.txt", "add", digest(b"one\n")),
        ("a.txt", "update", digest(b"a\r\nB\r\n")),
        ("old/name.txt", "move", digest(b"y\n")),
        ("gone.txt", "delete", None),
    ]
    assert files[2]["movePath"] == str(world.top / "new/name.txt")
    assert answer.metadata["filepath"] == "new.txt, a.txt, old/name.txt, gone.txt"


@pytest.mark.parametrize("fails_at", [1, 2, 3, 4, 5])
async def test_an_error_in_the_middle_puts_everything_back(
    world: World, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """Whichever write fails: every file is as it was, the session knows it so, and the error says so."""
    filled(world)
    known = dict(world.context.known)
    count = 0

    def dies(plain: object) -> object:
        def call(*arguments: object, **named: object) -> None:
            nonlocal count
            count += 1
            if count == fails_at:
                raise ContextError("the disk is full")
            plain(*arguments, **named)  # type: ignore[operator]

        return call

    for verb in ("write", "remove"):
        monkeypatch.setattr(write_path, verb, dies(getattr(write_path, verb)))
    said = await world.patch_failure(*WHOLE)
    assert said == "Nothing was changed: the disk is full."
    assert {path: digest for path, digest in world.context.known.items() if digest is not None} == known


async def test_what_cannot_be_put_back_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user, or a program, has changed it again meanwhile."""
    world.file("a.txt", "a\n")
    plain = write_path.write

    def racing(real: Path, data: bytes, *, seen: str | None, like: write_path.Kept | None = None) -> None:
        if real.name == "b.txt":
            (world.top / "a.txt").write_text("the user's\n")
            raise ContextError("the disk is full")
        plain(real, data, seen=seen, like=like)

    monkeypatch.setattr(write_path, "write", racing)
    with pytest.raises(Exception, match="could not be put back") as caught:
        await world.patch("*** Update File: a.txt", "-a", "+b", "*** Add File: b.txt", "+x")
    left = "These files were changed and could not be put back"
    assert str(caught.value) == f"the disk is full. {left}: {world.top}/a.txt."
    assert (world.top / "a.txt").read_text() == "the user's\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["*** Add File: a.txt", "+x"], "{top}/a.txt exists already. Read it, and use '*** Update File:'."),
        (["*** Update File: none.txt", "-x"], "There is no file {top}/none.txt."),
        (["*** Delete File: unread.txt"], "{top}/unread.txt exists, and you have not read it yet."),
        (["*** Update File: unread.txt", "-u"], "{top}/unread.txt exists, and you have not read it yet."),
        (
            ["*** Update File: a.txt", "*** Move to: b.txt"],
            "{top}/b.txt exists already, so {top}/a.txt cannot",
        ),
        (
            ["*** Update File: a.txt", "-a", "*** Update File: ./a.txt", "-b"],
            "The patch names {top}/a.txt twice. Put all its changes into one section.",
        ),
        (
            ["*** Update File: a.txt", " a", "-c"],
            f"{UNFIT} The nearest place is line 1; there differ:\n2: b\n   you wrote: c",
        ),
        (
            ["*** Update File: a.txt", "@@ nowhere", "-a"],
            f"{UNFIT} There is no line 'nowhere' in the file.",
        ),
        (["*** Update File: a.txt", "-quite another line"], f"{UNFIT} Nothing like it stands in the file."),
        (["nonsense"], "The patch cannot be read: line 2 of the patch is 'nonsense'; expected"),
    ],
)
async def test_a_patch_that_does_not_fit_changes_nothing(world: World, lines: list[str], said: str) -> None:
    """All of it is verified first, also behind a section that would fit; the error says what to do."""
    world.file("a.txt", "a\nb\n")
    world.file("b.txt", "b\n")
    world.file("unread.txt", "u\n", read=False)
    first = [] if lines == ["nonsense"] else ["*** Add File: first.txt", "+x"]
    failed = await world.patch_failure(*first, *lines)
    expected = said.format(top=world.top)
    assert failed.startswith(expected)
    assert world.context.asked == []


async def test_an_interrupt_does_not_stop_a_patch_between_two_files(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made to its end, and what it answered is there to be recorded."""
    filled(world)
    plain, scope, answers = write_path.write, anyio.CancelScope(), []

    def interrupted(
        real: Path, data: bytes, *, seen: str | None, like: write_path.Kept | None = None
    ) -> None:
        anyio.from_thread.run_sync(scope.cancel)
        plain(real, data, seen=seen, like=like)

    monkeypatch.setattr(write_path, "write", interrupted)
    with scope:
        answers.append(await world.patch(*WHOLE))
    assert [answer.title for answer in answers] == [
        "A new.txt\nM a.txt\nM old/name.txt -> new/name.txt\nD gone.txt"
    ]
    assert sorted(world.content()) == ["project/a.txt", "project/new.txt", "project/new/name.txt"]


async def test_what_is_there_already_is_no_edit(world: World) -> None:
    """Nothing is written, and no client hears of one."""
    world.file("a.txt", "a\n")
    await world.run("write", filePath="a.txt", content="a\n")
    assert world.context.edits == []


async def test_a_file_that_cannot_be_looked_at_any_more_puts_the_others_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have become unreadable while the user was asked."""
    first, second = world.file("a.txt", "a\n"), world.file("b.txt", "b\n")
    opened = open_path.file_in

    def denied(parent: int, real: Path) -> int:
        if real == second and first.read_text() == "A\n":
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(parent, real)

    monkeypatch.setattr(open_path, "file_in", denied)
    updates = [("a.txt", "a", "A"), ("b.txt", "b", "B")]
    lines = [
        line for name, old, new in updates for line in (f"*** Update File: {name}", f"-{old}", f"+{new}")
    ]
    said = await world.patch_failure(*lines)
    assert said.startswith("Nothing was changed: ")
    assert "b.txt may not be written: Permission denied" in said


async def test_a_move_keeps_the_mode_and_so_does_what_is_put_back(world: World) -> None:
    """A script stays one that can be run, a private file private."""
    script, private = world.file("run.sh", "#!/bin/sh\n"), world.file("key", "k\n")
    script.chmod(0o750)
    private.chmod(0o600)
    failing = ["*** Delete File: key", "*** Add File: x", "+1", "*** Add File: x/y", "+1"]
    assert "Nothing was changed" in await world.patch_failure(*failing)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    await world.patch("*** Update File: run.sh", "*** Move to: bin/run.sh")
    assert stat.S_IMODE((world.top / "bin/run.sh").stat().st_mode) == 0o750


@pytest.mark.parametrize(
    "section", [["*** Delete File: alias.txt"], ["*** Update File: alias.txt", "*** Move to: b.txt"]]
)
@pytest.mark.parametrize("is_dangling", [False, True])
async def test_a_link_is_neither_deleted_nor_moved(
    world: World, section: list[str], is_dangling: bool
) -> None:
    """The file that it leads to would go, and the link would stay and lead nowhere."""
    real = world.file("a.txt", "a\n")
    alias = world.top / "alias.txt"
    alias.symlink_to("a.txt")
    if is_dangling:
        real.unlink()
    assert await world.patch_failure(*section) == (
        f"{alias} is a link to {real}. This tool neither deletes nor moves links, and nothing was changed: "
        f"name {real} itself, or use a command for the link."
    )
    assert alias.is_symlink()


async def test_what_lies_in_a_linked_folder_is_deleted(world: World) -> None:
    """The link is on the way to the file, not the file."""
    world.file("real/a.txt", "a\n")
    (world.top / "linked").symlink_to("real")
    await world.patch("*** Delete File: linked/a.txt")
    assert world.content() == {}
    assert (world.top / "linked").is_symlink()


async def test_a_patch_that_takes_too_long_is_ended_in_words(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is changed; the answer says what to do."""
    monkeypatch.setattr(apply, "LINES_MAX", 1)
    world.file("a.txt", "a\nb\nc\n")
    assert await world.patch_failure("*** Update File: a.txt", "@@", "-c", "+d") == (
        "The patch takes too long to find its places in a.txt: it ended at the hunk at line 3, and nothing "
        "was changed. Use several patches."
    )


async def test_a_binary_file_is_deleted_and_moved(world: World) -> None:
    """No text of it is shown, and `read` cannot show it either; a hunk for it is refused."""
    data = b"\0\xff\n" * 10
    for name in ("a.bin", "b.bin", "c.bin"):
        world.file(name, data, read=False)
    moved = await world.patch("*** Delete File: a.bin", "*** Update File: b.bin", "*** Move to: d.bin")
    assert world.content() == {"project/c.bin": data, "project/d.bin": data}
    assert [(each["type"], each["patch"]) for each in moved.metadata["files"]] == [
        ("delete", ""),
        ("move", ""),
    ]
    said = await world.patch_failure("*** Update File: c.bin", "*** Move to: e.bin", "@@", "-a", "+b")
    assert said == f"{world.top}/c.bin exists, and you have not read it yet. Read it first."
    world.file("text.txt", "a\n", read=False)
    said = await world.patch_failure("*** Delete File: text.txt")
    assert said == f"{world.top}/text.txt exists, and you have not read it yet. Read it first."


async def test_a_binary_file_that_changed_is_not_deleted(world: World) -> None:
    """One that the session has seen, as a picture, is held to what it was."""
    path = world.file("a.png", b"\0one")
    path.write_bytes(b"\0two")
    assert "since you read or wrote it" in await world.patch_failure("*** Delete File: a.png")
