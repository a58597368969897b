"""Attacks on every tool that takes a path: none of them reads or writes what is outside.

The user is asked for whatever is outside, and here denies it; what is never opened is refused before anybody
is asked. A hard link is a file like any other (`location/open_path.py` says why): it can be read, and a write
puts a new file in its place and leaves the other name as it was.
"""

import hashlib
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast.location.filesystem import Filesystem
from holdfast.toolkit.declare import Tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.builtin import access
from holdfast.tools.builtin.apply_patch import apply_patch_tool
from holdfast.tools.builtin.change import Locks
from holdfast.tools.builtin.edit import edit_tool
from holdfast.tools.builtin.glob import glob_tool
from holdfast.tools.builtin.grep import grep_tool
from holdfast.tools.builtin.list import list_tool
from holdfast.tools.builtin.read import read_tool
from holdfast.tools.builtin.write import write_tool
from tests.location.racing import racing
from tests.tools.searching import ProgramContext

SECRET = "s3cr3t"


def patch(*lines: str) -> dict[str, Any]:
    return {"patchText": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])}


FILE_TOOLS: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "read": ("read", lambda path: {"filePath": path}),
    "write": ("write", lambda path: {"filePath": path, "content": "mine"}),
    "edit": ("edit", lambda path: {"filePath": path, "oldString": SECRET, "newString": "mine"}),
    "edit, new": ("edit", lambda path: {"filePath": path, "oldString": "", "newString": "mine"}),
    "patch, add": ("apply_patch", lambda path: patch(f"*** Add File: {path}", "+mine")),
    "patch, update": (
        "apply_patch",
        lambda path: patch(f"*** Update File: {path}", "@@", f"-{SECRET}", "+mine"),
    ),
    "patch, delete": ("apply_patch", lambda path: patch(f"*** Delete File: {path}")),
    "patch, move": (
        "apply_patch",
        lambda path: patch("*** Update File: ours", f"*** Move to: {path}", "@@", "-ours", "+mine"),
    ),
    "grep": ("grep", lambda path: {"pattern": ".", "path": path}),
}
FOLDER_TOOLS: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "read": ("read", lambda path: {"filePath": path}),
    "glob": ("glob", lambda path: {"pattern": "**", "path": path}),
    "grep": ("grep", lambda path: {"pattern": ".", "path": path}),
    "list": ("list", lambda path: {"path": path}),
}


class World:
    """A project with every trap in it, a secret outside, and the tools."""

    def __init__(self, top: Path) -> None:
        top = Path(os.path.realpath(top))
        self.project, self.outside = top / "project", top / "outside"
        for folder in (self.project / "folder", self.outside):
            folder.mkdir(parents=True)
        (self.outside / "secret").write_text(f"{SECRET}\n")
        (self.project / "ours").write_text("ours\n")
        (self.project / "folder" / "secret").write_text("ours\n")
        for name, target in {
            "to-file": "../outside/secret",
            "to-folder": "../outside",
            "chain": "chain-2",
            "chain-2": "to-folder",
            "loop": "loop-2",
            "loop-2": "loop",
            "to-nothing": "../outside/none",
            "to-proc": "/proc/self",
            "to-device": "/dev/zero",
        }.items():
            (self.project / name).symlink_to(target)
        os.mkfifo(self.project / "pipe")
        self.context = ProgramContext(self.project)
        self.context.denies = ["external_directory"]
        self.context.known = {
            path: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (self.project / "ours", self.outside / "secret", self.project / "folder" / "secret")
        }
        locks = Locks()

        def filesystem(context: Any) -> Filesystem:
            return Filesystem(context.directory, context.worktree)

        reach = access.reaching(filesystem)
        made = [make(reach) for make in (read_tool, glob_tool, grep_tool, list_tool)]
        made += [make(filesystem, locks) for make in (write_tool, edit_tool, apply_patch_tool)]
        self.tools: dict[str, Tool] = {tool.name: tool for tool in made}

    async def run(self, tool: str, input: dict[str, Any]) -> ToolOutput | str:
        """What the tool answers, or how it refuses; the secret is in neither, and stays what it is."""
        answer: Any
        try:
            answer = await self.tools[tool].run(self.context, input)
        except ToolFailure as failure:
            answer = str(failure)
        assert SECRET not in str(answer).replace(str(input), "")
        assert {path.name: path.read_text() for path in self.outside.iterdir()} == {"secret": f"{SECRET}\n"}
        return answer  # type: ignore[no-any-return]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


DENIED = "external_directory is denied"
FOLDERS = {
    "..": ("../outside", DENIED),
    ".. in the middle": ("folder/../../outside", DENIED),
    "absolute": ("{outside}", DENIED),
    "link": ("to-folder", DENIED),
    "link and ..": ("to-folder/../outside", DENIED),
    "chain of links": ("chain", DENIED),
    "loop of links": ("loop", "leads back to itself"),
    "link to nothing": ("to-nothing", DENIED),
    "/proc": ("/proc/self/cwd/../outside", "belongs to the system"),
    "link to /proc": ("to-proc/task", "belongs to the system"),
    "/dev": ("/dev/fd", "belongs to the system"),
    "/sys": ("/sys", "belongs to the system"),
    "long name": ("n" * 300, "too long"),
    "long path": ("n/" * 3_000, "at most 4096"),
    "NUL": ("to-folder\0", "NUL"),
    "other case": ("../OUTSIDE", DENIED),
}
FILES = {
    **{name: (f"{path}/secret", why) for name, (path, why) in FOLDERS.items() if "/proc" not in name},
    "link to a file": ("to-file", DENIED),
    "/proc file": ("/proc/self/environ", "belongs to the system"),
    "/proc descriptor": ("/proc/self/fd/0", "belongs to the system"),
    "link to /proc file": ("to-proc/environ", "belongs to the system"),
    "device": ("/dev/zero", "belongs to the system"),
    "link to a device": ("to-device", "belongs to the system"),
    "pipe": ("pipe", "is a named pipe, which is never opened"),
}


@pytest.mark.parametrize("attack", FILES)
@pytest.mark.parametrize("tool", FILE_TOOLS)
async def test_no_file_outside_is_reached(world: World, tool: str, attack: str) -> None:
    """Refused with a reason, and without waiting; what is outside stays as it is."""
    name, input = FILE_TOOLS[tool]
    path, why = FILES[attack]
    answer = await world.run(name, input(path.format(outside=world.outside)))
    assert isinstance(answer, str), answer
    assert why in answer


@pytest.mark.parametrize("attack", FOLDERS)
@pytest.mark.parametrize("tool", FOLDER_TOOLS)
async def test_no_folder_outside_is_reached(world: World, tool: str, attack: str) -> None:
    """Refused with a reason."""
    name, input = FOLDER_TOOLS[tool]
    path, why = FOLDERS[attack]
    answer = await world.run(name, input(path.format(outside=world.outside)))
    assert isinstance(answer, str), answer
    assert why in answer


@pytest.mark.parametrize("tool", ["glob", "grep", "list"])
async def test_a_search_from_the_top_goes_through_no_link_and_opens_no_pipe(
    world: World, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of links are shown, not what is behind them."""
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(world.project)
        listener.bind("socket")
        name, input = FOLDER_TOOLS[tool]
        answer = await world.run(name, input("."))
    assert isinstance(answer, ToolOutput)
    assert "ours" in answer.text


@pytest.mark.parametrize("tool", FILE_TOOLS)
async def test_a_hard_link_is_a_file_like_any_other(world: World, tool: str) -> None:
    """It is read; to write it leaves its other name as it was."""
    (world.project / "hard").hardlink_to(world.outside / "secret")
    world.context.known[world.project / "hard"] = world.context.known[world.outside / "secret"]
    name, input = FILE_TOOLS[tool]
    try:
        await world.tools[name].run(world.context, input("hard"))
    except ToolFailure as failure:
        assert tool in ("edit, new", "patch, add", "patch, move"), failure  # noqa: PT017 - these find a file there
    assert (world.outside / "secret").read_text() == f"{SECRET}\n"


@pytest.mark.parametrize("level", ["folder", "file"])
@pytest.mark.parametrize("tool", sorted({*FILE_TOOLS, *FOLDER_TOOLS}))
async def test_a_link_swapped_in_after_the_judgement_is_not_followed(
    world: World, monkeypatch: pytest.MonkeyPatch, tool: str, level: str
) -> None:
    """While the user is asked about what is inside, a link to what is outside takes its place."""
    if tool not in FILE_TOOLS and level == "file":
        return
    name, input = FILE_TOOLS.get(tool) or FOLDER_TOOLS[tool]
    swapped = world.project / ("folder" if level == "folder" else "folder/secret")
    asked = world.context.ask

    async def ask(*arguments: Any, **options: Any) -> None:
        if not swapped.is_symlink():
            swapped.rename(world.project / "away")
            swapped.symlink_to(world.outside if level == "folder" else world.outside / "secret")
        await asked(*arguments, **options)

    monkeypatch.setattr(world.context, "ask", ask)
    await world.run(name, input("folder/secret" if tool in FILE_TOOLS else "folder"))


@pytest.mark.parametrize("tool", sorted({*FILE_TOOLS, *FOLDER_TOOLS}))
async def test_a_racing_swap_leads_no_tool_outside(world: World, tool: str) -> None:
    """A folder of the project changes places with a link to one outside, as fast as another thread can."""
    name, input = FILE_TOOLS.get(tool) or FOLDER_TOOLS[tool]
    inside, away, link = world.project / "folder", world.project / "away", world.project / "link"
    link.symlink_to(world.outside)

    def swap(turn: int) -> None:
        first, second = (away, link) if turn % 2 == 0 else (link, away)
        with suppress(OSError):  # A tool may have made the folder anew.
            inside.rename(first)
            second.rename(inside)

    with racing(swap):
        for _ in range(ROUNDS):
            world.context.known[inside / "secret"] = hashlib.sha256(b"ours\n").hexdigest()
            await world.run(name, input("folder/secret" if tool in FILE_TOOLS else "folder"))


ROUNDS = 10
