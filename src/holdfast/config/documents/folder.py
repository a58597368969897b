"""Agents, modes and commands that lie as Markdown files in a configuration folder.

A file's name below `agent/` is the agent's name, folders kept (`team/review`), unless its front matter names
it. Walking is bounded; links to folders below the first are not followed, and the first only where it is
allowed.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from holdfast.config.documents import markdown
from holdfast.config.documents.document import Document, Read, text_of
from holdfast.errors import HoldfastError
from holdfast.person import small_file

FILES_MAX = 500
DEPTH_MAX = 8
ENTRIES_MAX = 20_000
BYTES_MAX = 256 * 1024

Kind = Literal["agent", "command"]

_FOLDERS: tuple[tuple[Kind, str, bool], ...] = (
    ("agent", "agent", False),
    ("agent", "agents", False),
    ("agent", "mode", True),
    ("agent", "modes", True),
    ("command", "command", False),
    ("command", "commands", False),
)
PROGRAMS = ("tool", "tools", "plugin", "plugins", "hook", "hooks")
"""Folders of programs: nothing here reads them, but their presence is reported where they are not trusted."""


def documents(
    folder: Path,
    problems: list[str],
    allowed: Callable[[Path], bool] = lambda _: True,
    reader: Read = small_file.read,
) -> Iterator[Document]:
    """A document for each agent and command; a file that cannot be read becomes a problem, a line."""
    for kind, name, mode in _FOLDERS:
        top = folder / name
        if not allowed(top):
            if os.path.lexists(top):
                problems.append(f"{top} lies outside the worktree; it is left out")
            continue
        for path in _files(top, 0 if mode else DEPTH_MAX, problems):
            if not allowed(path):
                problems.append(f"{path} lies outside the worktree; it is left out")
                continue
            try:
                document = _document(kind, top, path, reader, primary=mode)
            except markdown.BadFrontMatter as error:
                problems.append(f"{path}:{error.line}:{error.column}: {error}; the file is left out")
            except HoldfastError as error:
                problem = str(error)
                problems.append(
                    problem if problem.startswith(str(path)) else f"{path}: {problem}; the file is left out"
                )
            else:
                if document is not None:
                    yield document


def _document(kind: Kind, top: Path, path: Path, reader: Read, *, primary: bool) -> Document | None:
    text = text_of(path, BYTES_MAX, reader=reader)
    if text is None:
        return None
    head, body = markdown.split(text)
    name = head.pop("name", None) or path.relative_to(top).with_suffix("").as_posix()
    entry: dict[str, Any] = {**head, "prompt" if kind == "agent" else "template": body}
    if kind == "agent" and not body:
        del entry["prompt"]
    if primary:
        entry["mode"] = "primary"
    return Document(str(path), text, "markdown", path.parent, {kind: {str(name): entry}})


def _files(top: Path, depth: int, problems: list[str]) -> list[Path]:
    found: list[Path] = []
    seen = 0
    for place, folders, names in os.walk(top):
        level = len(Path(place).relative_to(top).parts)
        folders[:] = sorted(folders) if level < depth else []
        found.extend(Path(place, name) for name in sorted(names) if name.endswith(".md"))
        seen += len(folders) + len(names)
        if len(found) > FILES_MAX or seen > ENTRIES_MAX:
            many = f"{FILES_MAX} files" if len(found) > FILES_MAX else f"{ENTRIES_MAX} entries"
            problems.append(f"{top} has more than {many}; the others are left out")
            return found[:FILES_MAX]
    return found
