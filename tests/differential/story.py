"""One story of thirty calls, good and bad, told by the model to two programs."""

from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.testing.mock_provider.script import Call

EDITS: Final = "story"
"""The model that edits."""
PATCHES: Final = "gpt-5.2"
"""The model that patches: both programs judge by its name."""

CRLF: Final = "first\r\nsecond\r\nthird\r\n"
CODE: Final = """def greet(name):
    text = 'Hello ' + name
    return text


def leave(name):
    return 'Bye ' + name
"""


def prepare(project: Path, outside: Path) -> None:
    """The files that the story begins with."""
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")
    files = {
        "README.md": "# Title\n\nSome text.\nSome text.\n",
        "src/greet.py": CODE,
        "src/windows.txt": CRLF,
        "src/bom.txt": "\ufeffone\ntwo\n",
        "src/old.py": "a = 1\nb = 2\nc = 3\n",
        "src/gone.py": "x = 1\n",
        "no-newline.txt": "last line",
        ".gitignore": "*.log\n",
        "debug.log": "needle in a log\n",
        "notes/long.txt": "".join(f"line {number}\n" for number in range(1, 301)),
    }
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (project / "data.bin").write_bytes(bytes(range(256)))


class Told(msgspec.Struct, frozen=True):
    """A call with its name in the story."""

    name: str
    tool: str
    input: dict[str, Any]

    @property
    def call(self) -> Call:
        return Call(self.tool, self.input, id=f"call_{self.name}")


def edits(project: Path, outside: Path) -> list[Told]:
    """What the model that edits does, one call a turn."""

    def path(name: str) -> str:
        return str(project / name)

    def edit(name: str, old: str, new: str, **more: Any) -> dict[str, Any]:
        return {"filePath": path(name), "oldString": old, "newString": new, **more}

    why = {"description": "Does what the story says"}
    todos = [
        {"content": "look", "status": "completed", "priority": "high"},
        {"content": "change", "status": "in_progress", "priority": "low"},
    ]
    return [
        Told("read", "read", {"filePath": path("README.md")}),
        Told("read_page", "read", {"filePath": path("notes/long.txt"), "offset": 100, "limit": 3}),
        Told("read_past_end", "read", {"filePath": path("README.md"), "offset": 900}),
        Told("read_folder", "read", {"filePath": str(project)}),
        Told("read_missing", "read", {"filePath": path("READ.md")}),
        Told("read_binary", "read", {"filePath": path("data.bin")}),
        Told("read_outside", "read", {"filePath": str(outside / "secret.txt")}),
        Told("glob", "glob", {"pattern": "**/*.py", "path": str(project)}),
        Told("glob_nothing", "glob", {"pattern": "*.rs", "path": str(project)}),
        Told("grep", "grep", {"pattern": "def \\w+", "path": str(project)}),
        Told("grep_ignored", "grep", {"pattern": "needle", "path": str(project)}),
        Told("grep_bad", "grep", {"pattern": "(", "path": str(project)}),
        Told("edit", "edit", edit("README.md", "# Title", "# Heading")),
        Told("edit_twice", "edit", edit("README.md", "Some text.", "Other text.")),
        Told("edit_all", "edit", edit("README.md", "Some text.", "Other text.", replaceAll=True)),
        Told("edit_missing_text", "edit", edit("README.md", "Not there at all", "x")),
        Told("edit_same", "edit", edit("README.md", "Heading", "Heading")),
        Told("read_code", "read", {"filePath": path("src/greet.py")}),
        Told(
            "edit_indent", "edit", edit("src/greet.py", "text = 'Hello ' + name\nreturn text", "return name")
        ),
        Told("edit_unread", "edit", edit("src/old.py", "b = 2", "b = 20")),
        Told("read_old", "read", {"filePath": path("src/old.py")}),
        Told("write_old", "write", {"filePath": path("src/old.py"), "content": "a = 1\nb = 20\nc = 3\n"}),
        Told("read_crlf", "read", {"filePath": path("src/windows.txt")}),
        Told("edit_crlf", "edit", edit("src/windows.txt", "first\nsecond", "FIRST\nSECOND")),
        Told("read_bom", "read", {"filePath": path("src/bom.txt")}),
        Told("edit_bom", "edit", edit("src/bom.txt", "two", "2")),
        Told("write_new", "write", {"filePath": path("made/by/model.txt"), "content": "new\n"}),
        Told("write_again", "write", {"filePath": path("made/by/model.txt"), "content": "newer"}),
        Told("write_outside", "write", {"filePath": str(outside / "x.txt"), "content": "x"}),
        Told("edit_new", "edit", edit("made/empty.txt", "", "begun\n")),
        Told("edit_outside", "edit", edit("../outside/secret.txt", "secret", "public")),
        Told("bash", "bash", {"command": "printf made > made/by/bash.txt && cat made/by/bash.txt", **why}),
        Told("bash_exit", "bash", {"command": "echo before; exit 3", **why}),
        Told("bash_outside", "bash", {"command": f"cat {outside}/secret.txt", **why}),
        Told("todo", "todowrite", {"todos": todos}),
        Told("unknown", "no_such_tool", {"a": 1}),
        Told("bad_input", "read", {"file": "README.md"}),
    ]


def patches(project: Path, outside: Path) -> list[Told]:
    """What the model that patches does."""

    def patch(*lines: str) -> dict[str, Any]:
        return {"patchText": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])}

    return [
        Told("p_read_old", "read", {"filePath": str(project / "src/old.py")}),
        Told("p_read_gone", "read", {"filePath": str(project / "src/gone.py")}),
        Told("p_read_last", "read", {"filePath": str(project / "no-newline.txt")}),
        Told(
            "p_three",
            "apply_patch",
            patch(
                "*** Add File: src/added.py",
                "+z = 26",
                "*** Update File: src/old.py",
                "*** Move to: src/moved.py",
                "@@",
                "-a = 1",
                "+a = 100",
                "*** Delete File: src/gone.py",
            ),
        ),
        Told(
            "p_no_newline",
            "apply_patch",
            patch("*** Update File: no-newline.txt", "@@", "-last line", "+last"),
        ),
        Told("p_wrong", "apply_patch", patch("*** Update File: src/moved.py", "@@", "-nowhere", "+x")),
        Told("p_half", "apply_patch", patch("*** Add File: half.txt", "+h", "*** Delete File: never.txt")),
        Told("p_broken", "apply_patch", {"patchText": "no patch at all"}),
        Told("p_outside", "apply_patch", patch(f"*** Add File: {outside}/y.txt", "+y")),
    ]
