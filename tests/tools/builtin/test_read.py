"""The tool `read`: asks before it opens, pages what is long, and says what the model can do next."""

import base64
import hashlib
import io
import os
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.location.filesystem import Filesystem
from holdfast.toolkit.output import Attachment, ToolDenied, ToolFailure, ToolOutput
from holdfast.tools import bound
from holdfast.tools.bound import OutputLimits
from holdfast.tools.builtin import access, read, text_page
from tests.tools.fake_context import Asked, FakeContext

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 10


class World:
    """A checkout, a session in it, something outside, and a folder open to all."""

    def __init__(self, top: Path) -> None:
        self.top = top / "project"
        self.outside = top / "outside"
        self.kept = top / "kept"
        for folder in (self.top, self.outside, self.kept):
            folder.mkdir()
        self.context = FakeContext(self.top)
        self.limits = OutputLimits()

    async def read(self, path: str | Path, **input: Any) -> ToolOutput:
        tool = read.read_tool(
            access.reaching(lambda context: Filesystem(context.directory, context.worktree, [self.kept])),
            self.limits,
        )
        answer = await tool.run(self.context, {"filePath": str(path), **input})
        assert isinstance(answer, ToolOutput)
        return answer

    async def failure(self, path: str | Path, **input: Any) -> str:
        with pytest.raises(ToolFailure) as caught:
            await self.read(path, **input)
        return str(caught.value)

    def write(self, name: str, data: str | bytes) -> Path:
        path = self.top / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_definition_is_what_the_specification_names() -> None:
    """Parameters, permission, and that it may be run again."""
    tool = read.read_tool(access.reaching(lambda context: Filesystem(context.directory, context.worktree)))
    assert (tool.name, tool.permission, tool.repeatable) == ("read", "read", True)
    assert sorted(tool.schema["properties"]) == ["filePath", "limit", "offset"]
    assert tool.schema["required"] == ["filePath"]


async def test_a_file_that_is_denied_is_not_opened(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are heard before anything is touched."""
    world.write("a.txt", "secret")
    world.context.denies = ["read"]
    monkeypatch.setattr(Filesystem, "open", lambda *_: pytest.fail("opened"))
    with pytest.raises(ToolDenied):
        await world.read("a.txt")


async def test_what_is_outside_asks_first_and_shows_the_real_target(world: World) -> None:
    """Denied, it ends there; nothing tells whether the file exists."""
    (world.outside / "x.txt").write_text("x")
    (world.top / "link").symlink_to(world.outside)
    world.context.denies = ["external_directory"]
    for path in ("link/x.txt", "link/none.txt"):
        with pytest.raises(ToolDenied):
            await world.read(path)
    assert world.context.asked == [
        Asked(
            permission="external_directory",
            patterns=[f"{world.outside}/*"],
            always=[f"{world.outside}/*"],
            metadata={
                "filepath": f"{world.outside}/{name}",
                "parentDir": str(world.outside),
                "asked": f"{world.top}/link/{name}",
            },
        )
        for name in ("x.txt", "none.txt")
    ]


async def test_a_path_inside_asks_to_read_and_nothing_else(world: World) -> None:
    """Under its name from the top of the project."""
    path = world.write("a.txt", "a")
    await world.read("a.txt")
    assert world.context.asked == [
        Asked(permission="read", patterns=["a.txt"], always=["*"], metadata={"filepath": str(path)})
    ]


async def test_a_link_is_asked_for_by_both_its_names(world: World) -> None:
    """So that a rule against either holds; outside, the folder as written and the real one."""
    world.write(".env", "KEY=1")
    (world.top / "notes").symlink_to(".env")
    (world.outside / "far").mkdir()
    (world.outside / "far/x").write_text("x")
    (world.outside / "near").symlink_to("far")
    await world.read("notes")
    await world.read(world.outside / "near" / "x")
    assert [(asked.permission, asked.patterns) for asked in world.context.asked] == [
        ("read", ["notes", ".env"]),
        ("external_directory", [f"{world.outside}/near/*", f"{world.outside}/far/*"]),
        (
            "read",
            [
                "../outside/near/x",
                f"{world.outside}/near/x",
                "../outside/far/x",
                f"{world.outside}/far/x",
            ],
        ),
    ]


async def test_a_folder_named_like_a_wildcard_cannot_be_approved_for_good(world: World) -> None:
    """Its pattern would stand for all its neighbours."""
    (world.outside / "*").mkdir()
    await world.read(world.outside / "*")
    assert world.context.asked[0].patterns == [f"{world.outside}/*/*"]
    assert world.context.asked[0].always == []


async def test_folders_open_to_all_are_read_without_asking_to_leave(world: World) -> None:
    """Kept tool output, by its absolute path; the rules on reading are still heard."""
    kept = world.kept / "tool_1"
    kept.write_text("whole")
    assert "1: whole" in (await world.read(kept)).text
    assert [asked.permission for asked in world.context.asked] == ["read"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "holds a NUL"),
        ("a\0", "holds a NUL"),
        ("/dev/zero", "devices and processes"),
        ("/proc/self/environ", "devices and processes"),
        ("pipe", "is a named pipe"),
        ("loop", "leads back to itself"),
        ("n" * 300, "too long"),
    ],
)
async def test_what_cannot_be_read_is_told_to_the_model(world: World, path: str, words: str) -> None:
    """Without asking anybody, and without waiting."""
    os.mkfifo(world.top / "pipe")
    (world.top / "loop").symlink_to("loop")
    failure = await world.failure(path)
    assert failure.startswith("This path cannot be used: ")
    assert words in failure
    assert world.context.asked == []


@pytest.mark.parametrize("input", [{"offset": 0}, {"limit": 0}, {"offset": "1"}, {"lines": 3}])
async def test_wrong_arguments_are_refused(world: World, input: dict[str, Any]) -> None:
    """They start at 1 and are numbers."""
    world.write("a.txt", "a")
    assert "The arguments of read are not valid" in await world.failure("a.txt", **input)


async def test_a_file_that_was_swapped_for_a_link_during_the_question_is_not_read(world: World) -> None:
    """The person was asked about another one."""
    path = world.write("a.txt", "a")

    async def ask(*_: object, **__: object) -> None:
        path.unlink()
        path.symlink_to(world.outside / "secret")

    world.context.ask = ask  # type: ignore[method-assign]
    assert "was replaced by something else while it was being opened" in await world.failure("a.txt")


async def test_a_missing_file_is_answered_with_names_like_it(world: World) -> None:
    """Three at most, other cases too; without any there is none."""
    for name in ("README.md", "reader.py", "readme.txt", "readme.rst", "zzz"):
        world.write(name, "")
    failure = await world.failure("readme")
    assert failure.startswith(
        f"There is no file {world.top}/readme.\nDid you mean one of these?\n{world.top}/"
    )
    assert len(failure.splitlines()) == 5
    assert await world.failure("quux") == f"There is no file {world.top}/quux."
    assert await world.failure("none/deep") == f"There is no file {world.top}/none/deep."


async def test_a_binary_file_is_refused(world: World) -> None:
    """By its name, a NUL, or too many control characters; an empty one of any name is only empty."""
    for name, data in [
        ("x.zip", b"text"),
        ("X.PYC", b"text"),
        ("nul", b"a\0b"),
        ("control", b"\x01\x02\x03abc"),
    ]:
        world.write(name, data)
        assert "is a binary file" in await world.failure(name)
    world.write("empty.bin", b"")
    world.write("colours.log", b"\x1b[31mred\x1b[0m\r\n\tx\n")
    assert "(The file is empty.)" in (await world.read("empty.bin")).text
    assert "red" in (await world.read("colours.log")).text


async def test_a_file_comes_with_numbers_and_everything_that_people_want_to_see(world: World) -> None:
    """The whole answer."""
    path = world.write("a.txt", "one\r\nzwö\n")
    assert await world.read("a.txt") == ToolOutput(
        text=f"<path>{path}</path>\n<type>file</type>\n<content>\n1: one\n2: zwö\n"
        "(End of the file, which has 2 lines.)\n</content>",
        title="a.txt",
        metadata={
            "preview": "one\nzwö",
            "truncated": False,
            "loaded": [],
            "filepath": str(path),
            "display": {
                "type": "file",
                "path": str(path),
                "text": "one\nzwö",
                "lineStart": 1,
                "lineEnd": 2,
                "totalLines": 2,
                "truncated": False,
            },
            "sha256": hashlib.sha256("one\r\nzwö\n".encode()).hexdigest(),
        },
    )


async def test_a_page_says_how_to_go_on(world: World) -> None:
    """From the middle, up to the end, and not beyond; the fingerprint is the whole file's on each page."""
    data = "".join(f"line {number}\n" for number in range(1, 11))
    path = world.write("a.txt", data)
    middle = await world.read("a.txt", offset=3, limit=4)
    end = await world.read("a.txt", offset=7, limit=4)

    assert middle.text == (
        f"<path>{path}</path>\n<type>file</type>\n<content>\n3: line 3\n4: line 4\n5: line 5\n6: line 6\n"
        "(Lines 3 to 6 of 10. Go on with offset=7.)\n</content>"
    )
    assert (middle.metadata["truncated"], end.metadata["truncated"]) == (True, False)
    assert end.text.endswith("10: line 10\n(End of the file, which has 10 lines.)\n</content>")
    assert {page.metadata["sha256"] for page in (middle, end)} == {hashlib.sha256(data.encode()).hexdigest()}
    assert await world.failure("a.txt", offset=11) == (
        f"{path} has 10 lines; there is no line 11. Use a smaller offset."
    )


async def test_an_empty_file_has_a_first_line_to_ask_for_and_no_second(world: World) -> None:
    """It is no error to read it."""
    path = world.write("a.txt", "")
    answer = await world.read("a.txt")
    assert "(The file is empty.)" in answer.text
    assert (answer.metadata["display"]["lineEnd"], answer.metadata["display"]["totalLines"]) == (0, 0)
    assert await world.failure("a.txt", offset=2) == (
        f"{path} has 0 lines; there is no line 2. Use a smaller offset."
    )


async def test_long_lines_are_cut_and_odd_bytes_are_shown_as_well_as_can_be(world: World) -> None:
    """A line of any length takes one line; marks of order and wrong bytes do no harm."""
    cut = "... (line cut at 2000 characters)"
    world.write("a.txt", b"\xef\xbb\xbfbom\n" + b"\xff\n" + "é".encode() * 100_000 + b"\n" + b"x" * 2000)
    assert (await world.read("a.txt")).metadata["display"]["text"].split("\n") == [
        "bom",
        "\N{REPLACEMENT CHARACTER}",
        "é" * 2000 + cut,
        "x" * 2000,
    ]


@pytest.mark.parametrize(
    "data",
    [
        "x\n" * 5000,
        "y" * 150 + "\n",
        ("é" * 300 + "\n") * 1000,
        "z" * 1_000_000,
        ("😀" * 3000 + "\n") * 50,
    ],
)
@pytest.mark.parametrize("limits", [OutputLimits(), OutputLimits(lines_max=50, bytes_max=9000)])
async def test_pages_fit_the_limits_of_a_settlement_and_add_up_to_the_file(
    world: World, data: str, limits: OutputLimits
) -> None:
    """Bounding never has to cut one; following the footers shows each line once."""
    world.limits = limits
    world.write("a.txt", data)
    lines: list[str] = []
    more = True
    while more:
        answer = await world.read("a.txt", offset=len(lines) + 1)

        async def keep(text: str) -> str:
            pytest.fail("cut")

        await bound.bound(answer, limits, keep)
        lines += answer.metadata["display"]["text"].split("\n")
        more = answer.metadata["truncated"]
    cut = "... (line cut at 2000 characters)"
    assert lines == [line if len(line) <= 2000 else line[:2000] + cut for line in data.splitlines()]


async def test_a_file_too_large_to_count_is_read_from_its_beginning(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a total and a fingerprint; what lies too far in is told."""
    monkeypatch.setattr(text_page, "SCAN_BYTES_MAX", 10_000)
    monkeypatch.setattr(text_page, "CHUNK_BYTES", 1000)
    path = world.write("a.txt", "12345678\n" * 5000)
    answer = await world.read("a.txt", limit=2)
    assert "(Lines 1 to 2 of a file too large to count. Go on with offset=3.)" in answer.text
    assert "sha256" not in answer.metadata
    assert "totalLines" not in answer.metadata["display"]
    assert (await world.failure("a.txt", offset=3000)).startswith(
        f"Line 3000 of {path} lies beyond the first "
    )
    world.write("b.txt", "x" * 50_000)
    assert (await world.read("b.txt")).metadata["display"]["lineEnd"] == 1


async def test_a_folder_is_listed_in_pages(world: World) -> None:
    """Folders, and links to them, with a slash."""
    for name in ("b.txt", "a.txt"):
        world.write(name, "")
    (world.top / "sub").mkdir()
    (world.top / "to").symlink_to("sub")
    whole = await world.read(world.top)
    page = await world.read(".", offset=2, limit=2)

    assert whole.text == (
        f"<path>{world.top}</path>\n<type>directory</type>\n<entries>\na.txt\nb.txt\nsub/\nto/\n"
        "(4 names.)\n</entries>"
    )
    assert (whole.title, whole.metadata["truncated"]) == (".", False)
    assert "b.txt\nsub/\n(Names 2 to 3 of 4. Go on with offset=4.)" in page.text
    assert page.metadata == {
        "preview": "b.txt\nsub/",
        "truncated": True,
        "loaded": [],
        "display": {
            "type": "directory",
            "path": str(world.top),
            "entries": ["b.txt", "sub/"],
            "offset": 2,
            "totalEntries": 4,
            "truncated": True,
        },
    }
    assert "there is no name 5" in await world.failure(".", offset=5)
    assert "(The folder is empty.)" in (await world.read("sub")).text


async def test_a_folder_outside_is_asked_for_by_itself(world: World) -> None:
    """Not by the folder that holds it."""
    await world.read(world.outside)
    assert world.context.asked[0].patterns == [f"{world.outside}/*"]


@pytest.mark.parametrize(
    ("data", "mime", "what"),
    [
        (PNG, "image/png", "The picture"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg", "The picture"),
        (b"GIF89a\0", "image/gif", "The picture"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", "The picture"),
        (b"%PDF-1.7\n", "application/pdf", "The PDF"),
    ],
)
async def test_pictures_and_pdfs_are_attached(world: World, data: bytes, mime: str, what: str) -> None:
    """By what they hold, whatever they are called."""
    path = world.write("thing.txt", data)
    text = f"{what} {path} has {len(data)} bytes."
    assert await world.read("thing.txt") == ToolOutput(
        text=text,
        title="thing.txt",
        metadata={
            "preview": text,
            "truncated": False,
            "loaded": [],
            "filepath": str(path),
            "sha256": hashlib.sha256(data).hexdigest(),
        },
        attachments=(
            Attachment(
                mime=mime,
                url=f"data:{mime};base64,{base64.b64encode(data).decode()}",
                filename="thing.txt",
            ),
        ),
    )


async def test_a_picture_that_is_too_large_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would have to fit a record and a request."""
    monkeypatch.setattr(read, "MEDIA_BYTES_MAX", 1 << 20)
    world.write("exact.png", PNG + b"x" * ((1 << 20) - len(PNG)))
    world.write("over.png", PNG + b"x" * ((1 << 20) - len(PNG) + 1))
    assert len((await world.read("exact.png")).attachments) == 1
    assert "has more than the 1 MiB that can be shown" in await world.failure("over.png")


def test_a_page_far_down_is_reached_in_chunks() -> None:
    """A file of line feeds has twenty million lines; they are counted, not looked at one by one."""
    start = time.process_time()
    page = text_page.page(io.BytesIO(b"\n" * (20 << 20)), offset=20_000_000, lines_max=10, bytes_max=1000)
    assert time.process_time() - start < 3.0
    assert (page.first, len(page.lines), page.total, page.more) == (20_000_000, 10, 20 << 20, True)


@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"a\nb", b"\n\nab\ncd\n\n", b"a\nbcdefghij\nk"])
@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_a_page_is_the_same_however_it_is_reached(
    data: bytes, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line, the number of lines and the fingerprint, from any line on, also behind the last."""
    monkeypatch.setattr(text_page, "CHUNK_BYTES", chunk)
    lines = data.decode().splitlines()
    for offset in range(1, len(lines) + 3):
        page = text_page.page(io.BytesIO(data), offset=offset, lines_max=1, bytes_max=1000)
        assert page == text_page.Page(
            lines=tuple(lines[offset - 1 : offset]),
            first=offset,
            total=len(lines),
            more=offset < len(lines),
            sha256=hashlib.sha256(data).hexdigest(),
        )
