"""The tools `write` and `edit`: what they change, what they keep, and what they refuse."""

import hashlib
import json
import os
from pathlib import Path

import anyio
import pytest

from holdfast.toolkit.output import ToolDenied
from holdfast.tools.replace import effort
from tests.tools.builtin.changing import World, text_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_definitions_are_what_the_specification_names(world: World) -> None:
    """Parameters and permission; none may be run again without a thought."""
    shown = {
        name: (tool.permission, tool.repeatable, sorted(tool.schema["properties"]), tool.schema["required"])
        for name, tool in world.tools.items()
    }
    assert shown == {
        "write": ("edit", False, ["content", "filePath"], ["filePath", "content"]),
        "edit": (
            "edit",
            False,
            ["filePath", "newString", "oldString", "replaceAll"],
            ["filePath", "oldString", "newString"],
        ),
        "apply_patch": ("edit", False, ["patchText"], ["patchText"]),
    }


async def test_a_new_file_is_made_with_its_folders(world: World) -> None:
    """The answer says so; the metadata has the digest by which the session knows it from now on."""
    answer = await world.run("write", filePath="a/b/new.txt", content="one\ntwo\n")
    path = world.top / "a/b/new.txt"
    assert path.read_text() == "one\ntwo\n"
    assert answer.text == f"Made {path} (2 lines)."
    assert answer.title == "a/b/new.txt"
    assert answer.metadata == {
        "filepath": str(path),
        "exists": False,
        "diff": "--- a/b/new.txt\n+++ a/b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two",
        "sha256": hashlib.sha256(b"one\ntwo\n").hexdigest(),
        "diagnostics": {},
    }
    assert world.context.edits == [path]


async def test_the_user_is_asked_with_the_diff_before_anything_is_written(world: World) -> None:
    """What was denied leaves everything as it was."""
    path = world.file("a.txt", "one\n")
    world.context.denies = ["edit"]
    with pytest.raises(ToolDenied):
        await world.run("edit", filePath="a.txt", oldString="one", newString="two")
    assert path.read_text() == "one\n"
    (asked,) = world.context.asked
    assert (asked.permission, asked.patterns, asked.always) == ("edit", ["a.txt"], ["*"])
    assert asked.metadata == {"filepath": str(path), "diff": "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two"}


@pytest.mark.parametrize("tool", ["write", "edit"])
async def test_a_file_that_was_not_read_is_not_overwritten(world: World, tool: str) -> None:
    """Nor one that somebody else has changed since: the model would undo what it does not know of."""
    world.file("a.txt", "one\n", read=False)
    input = {"content": "x"} if tool == "write" else {"oldString": "one", "newString": "x"}
    said = await world.failure(tool, filePath="a.txt", **input)
    assert said == f"{world.top}/a.txt exists, and you have not read it yet. Read it first."
    world.file("a.txt", "one\n")
    world.file("a.txt", "one\nmore\n", read=False)
    said = await world.failure(tool, filePath="a.txt", **input)
    assert "was changed by somebody else since you read or wrote it" in said


@pytest.mark.parametrize("tool", ["write", "edit", "apply_patch"])
async def test_a_write_protected_file_is_left_alone(world: World, tool: str) -> None:
    """Whoever runs it: a file that is replaced whole would not stop anybody by its mode."""
    world.file("a.txt", "one\n").chmod(0o444)
    input = {
        "write": {"filePath": "a.txt", "content": "x"},
        "edit": {"filePath": "a.txt", "oldString": "one", "newString": "x"},
        "apply_patch": {"patchText": text_of("*** Update File: a.txt", "@@", "-one", "+x")},
    }[tool]
    said = await world.failure(tool, **input)
    assert "a.txt is write-protected, so it was left alone. Ask the user" in said
    (world.top / "a.txt").chmod(0o644)
    await world.run(tool, **input)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x", b"x\r\n"),
        (b"a\r\n1\r2\r\nb\r\n", "b", "x", b"a\r\n1\r2\r\nx\r\n"),
        (b"a\r\r\nb\r\n", "b", "x", b"a\r\r\nx\r\n"),
        (b"a\r\nb\r\n", "b", "1\r2", b"a\r\n1\r2\r\n"),
        (b"a\r\nb\nc\n", "b", "x", b"a\r\nx\nc\n"),
        (b"\xef\xbb\xbfa\nb", "a", "x", b"\xef\xbb\xbfx\nb"),
        (b"a\nb", "b", "x", b"a\nx"),
        (b"a\nb\n", "b\n", "", b"a\n"),
        ("ä\nö\n".encode(), "ö", "ü", "ä\nü\n".encode()),
    ],
    ids=[
        "CRLF",
        "CRLF written out",
        "a CR in the middle of a line",
        "two CRs",
        "a CR that is new",
        "mixed",
        "byte-order mark",
        "no line feed at the end",
        "nothing",
        "umlauts",
    ],
)
async def test_an_edit_keeps_what_it_does_not_change(
    world: World, before: bytes, old: str, new: str, after: bytes
) -> None:
    """Line ends, the byte-order mark, the end of the file: byte for byte."""
    path = world.file("a.txt", before)
    answer = await world.run("edit", filePath="a.txt", oldString=old, newString=new)
    assert path.read_bytes() == after
    assert answer.metadata["sha256"] == hashlib.sha256(after).hexdigest()


async def test_a_write_keeps_the_form_of_the_file(world: World) -> None:
    """A file with CRLF and a byte-order mark stays one, whatever the model wrote."""
    path = world.file("a.txt", b"\xef\xbb\xbfa\r\nb\r\n")
    await world.run("write", filePath="a.txt", content="x\ny\n")
    assert path.read_bytes() == b"\xef\xbb\xbfx\r\ny\r\n"


async def test_an_edit_shows_what_really_changed(world: World) -> None:
    """With lines around it, and counts for clients."""
    world.file("a.py", "".join(f"line {n}\n" for n in range(1, 30)))
    answer = await world.run("edit", filePath="a.py", oldString="line 10\n", newString="new\nnewer\n")
    lines = [
        " line 7",
        " line 8",
        " line 9",
        "-line 10",
        "+new",
        "+newer",
        " line 11",
        " line 12",
        " line 13",
    ]
    assert answer.text == "\n".join([f"Edited {world.top}/a.py:", "", "@@ -7,7 +7,8 @@", *lines])
    assert answer.metadata["filediff"] == {
        "file": "a.py",
        "patch": "\n".join(["--- a.py", "+++ a.py", "@@ -7,7 +7,8 @@", *lines]),
        "additions": 2,
        "deletions": 1,
    }


@pytest.mark.parametrize(
    ("input", "said"),
    [
        ({"oldString": "x", "newString": "x"}, "oldString and newString are equal, so nothing would change."),
        ({"oldString": "", "newString": "x"}, "a.txt exists, so oldString cannot be empty."),
        ({"oldString": "one", "newString": "x"}, "oldString stands in a.txt several times (lines 1, 3)."),
        (
            {"oldString": "nothing like it", "newString": "x"},
            "oldString does not stand in a.txt, nor anything",
        ),
        (
            {"oldString": "twoo\none", "newString": "x"},
            "oldString does not stand in a.txt. The nearest is at line 2; there differ:\n2: two\n   you",
        ),
    ],
)
async def test_an_edit_that_cannot_be_made_says_what_to_do(
    world: World, input: dict[str, str], said: str
) -> None:
    """The nearest lines with what differs, or the places between which it cannot choose."""
    world.file("a.txt", "one\ntwo\none\n")
    assert (await world.failure("edit", filePath="a.txt", **input)).startswith(said)


async def test_every_one_is_replaced_if_that_is_wanted(world: World) -> None:
    """And only then."""
    path = world.file("a.txt", "one\ntwo\none\n")
    await world.run("edit", filePath="a.txt", oldString="one", newString="1", replaceAll=True)
    assert path.read_text() == "1\ntwo\n1\n"


async def test_what_is_no_file_or_no_text_is_refused(world: World) -> None:
    """A missing file with the names that were meant; a folder; bytes that are no text."""
    world.file("notes.txt", "x")
    (world.top / "folder").mkdir()
    world.file("a.bin", b"\xff\xfe\x00")
    world.file("b.bin", b"a\x00b")
    said = await world.failure("edit", filePath="note.txt", oldString="x", newString="y")
    assert (
        said == f"There is no file {world.top}/note.txt.\nDid you mean one of these?\n{world.top}/notes.txt"
    )
    said = await world.failure("write", filePath="folder", content="x")
    assert said == f"{world.top}/folder is a folder. Give the path of a file in it."
    assert "is no text in UTF-8" in await world.failure(
        "edit", filePath="a.bin", oldString="a", newString="b"
    )
    assert "is a binary file" in await world.failure("edit", filePath="b.bin", oldString="a", newString="b")
    assert "NUL character" in await world.failure("write", filePath="new", content="a\0b")


async def test_an_empty_old_text_makes_a_new_file(world: World) -> None:
    """As `write` would."""
    await world.run("edit", filePath="new.txt", oldString="", newString="x\n")
    assert (world.top / "new.txt").read_text() == "x\n"


async def test_two_edits_of_one_file_at_once_are_both_made(world: World) -> None:
    """The second sees what the first has written."""
    path = world.file("a.txt", "one\ntwo\n")
    async with anyio.create_task_group() as group:
        for old in ("one", "two"):
            group.start_soon(
                lambda old=old: world.run("edit", filePath="a.txt", oldString=old, newString=old.upper())  # type: ignore[misc]
            )
    assert path.read_text() == "ONE\nTWO\n"


@pytest.mark.parametrize("how", ["..", "absolute", "link", "folder link", "chain"])
@pytest.mark.parametrize("tool", ["write", "edit", "apply_patch"])
async def test_what_lies_outside_is_asked_for_by_its_real_place(world: World, tool: str, how: str) -> None:
    """Before it is looked at; a denial leaves it as it was, and tells nothing of it."""
    target = world.outside / "a.txt"
    target.write_text("secret\n")
    (world.top / "link.txt").symlink_to(target)
    (world.top / "chain.txt").symlink_to(world.top / "link.txt")
    (world.top / "folder").symlink_to(world.outside)
    path = {
        "..": "../outside/a.txt",
        "absolute": str(target),
        "link": "link.txt",
        "folder link": "folder/a.txt",
        "chain": "chain.txt",
    }[how]
    world.context.denies = ["external_directory"]
    input = {
        "write": {"filePath": path, "content": "x"},
        "edit": {"filePath": path, "oldString": "secret", "newString": "x"},
        "apply_patch": {"patchText": f"*** Begin Patch\n*** Update File: {path}\n-secret\n+x\n*** End Patch"},
    }[tool]
    with pytest.raises(ToolDenied):
        await world.run(tool, **input)
    assert target.read_text() == "secret\n"
    assert [each.permission for each in world.context.asked] == ["external_directory"]
    assert world.context.asked[0].metadata["filepath"] == str(target)


@pytest.mark.parametrize(
    "path", ["/proc/self/mem", "/dev/null", "/sys/x", "loop", "pipe", "x" * 5000, "a\0b", ""]
)
async def test_what_is_never_written_is_refused_with_a_reason(world: World, path: str) -> None:
    """Devices, pipes, the kernel's own trees, loops of links, names that are none."""
    (world.top / "loop").symlink_to(world.top / "loop")
    os.mkfifo(world.top / "pipe")
    said = await world.failure("write", filePath=path, content="x")
    assert said.startswith("This path cannot be used: ")


async def test_a_search_that_costs_too_much_is_ended_in_words(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is guessed; the answer says what finds the place."""
    monkeypatch.setattr(effort, "STEPS_MAX", 5)
    world.file("a.txt", "{\n  one\n}\n{\n  two\n}\n")
    said = await world.failure("edit", filePath="a.txt", oldString="{\n  onne\n}", newString="x")
    assert said == (
        "oldString does not stand in a.txt as it is written, and too many lines there are somewhat like it "
        "to compare them all. Read the place that you mean again, and give a shorter oldString exactly as it "
        "stands there."
    )
    await world.run("edit", filePath="a.txt", oldString="{\n  one\n}", newString="x")
    assert world.content() == {"project/a.txt": b"x\n{\n  two\n}\n"}


async def test_the_record_of_a_change_stays_small(world: World) -> None:
    """However much changed: the diff is cut wherever it is kept, also in what the user is asked."""
    lines = 60_000
    world.file("a.txt", "value x\n" * lines)
    world.file("b.txt", "value x\n" * lines)
    edit = await world.run("edit", filePath="a.txt", oldString="x", newString="y", replaceAll=True)
    write = await world.run("write", filePath="a.txt", content="value z\n" * lines)
    patch = await world.run(
        "apply_patch",
        patchText="*** Begin Patch\n*** Delete File: a.txt\n*** Delete File: b.txt\n*** End Patch",
    )
    for name, answer, most in (("edit", edit, 2), ("write", write, 1), ("apply_patch", patch, 3)):
        assert len(json.dumps(answer.metadata)) < most * 230_000, name
    assert all(len(json.dumps(each.metadata)) < 3 * 230_000 for each in world.context.asked)
    assert edit.metadata["filediff"]["additions"] == edit.metadata["filediff"]["deletions"] == lines
    assert edit.metadata["diff"].endswith(" more lines of the diff)")


async def test_a_file_on_the_way_is_named(world: World) -> None:
    """There can be nothing below a file."""
    world.file("parse.py", "x\n")
    said = await world.failure("write", filePath="parse.py/deep/x", content="x")
    assert said == (
        f"{world.top}/parse.py is a file, so nothing can lie below it as {world.top}/parse.py/deep/x would. "
        "Choose another path."
    )
