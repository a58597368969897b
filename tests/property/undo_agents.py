"""The model of the scene of undo: it calls the real tools, with inputs that are made when it is asked."""

import os
import shlex
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from holdfast.provider.request.events import ProviderEvent
from holdfast.provider.request.request import Request
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step

MOVED = "moved"
"""Where a file goes that is moved, and whence it comes back."""
WAITS = "n=0; while [ ! -e {0}/go ] && [ $n -lt 3000 ]; do sleep 0.01; n=$((n+1)); done"
SETTINGS: dict[str, Any] = {"permission": {"*": "allow"}, "snapshot": True, "sandbox": {"mode": "off"}}
MODELS = ("m", "gpt-5.2")
"""The one edits, the other one patches."""


class Model:
    """Answers each request of a session with the next of its steps; when there are none, with a word."""

    def __init__(self) -> None:
        self.steps: dict[str, list[Callable[[], Step]]] = {}

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        """The events of the next step."""
        step = self.next(request.session or "")
        async for event in ScriptedProvider(step).stream(request):
            yield event

    def next(self, session: str) -> Step:
        """The next step of a session."""
        left = self.steps.get(session, [])
        return left.pop(0)() if left else Step(Say("done"))


def lines_of(path: Path) -> list[str] | None:
    """What a file holds; None if there is none."""
    return path.read_text().splitlines() if path.is_file() else None


def read(path: Path, id: str) -> Call:
    """A call that reads a file: what was not read cannot be edited."""
    return Call("read", {"filePath": str(path)}, id=id)


def noted(model: str, path: Path, lines: list[str] | None, new: list[str] | None, id: str) -> Call | None:
    """A call of a tool that notes what it writes; None where there is none for it."""
    if model != "m":
        return Call("apply_patch", {"patchText": patch(path, lines, new)}, id=id)
    if new is None:
        return None
    if not lines or len(new) % 2:
        return Call("write", {"filePath": str(path), "content": text(new)}, id=id)
    old, piece = differing(lines, new)
    return Call("edit", {"filePath": str(path), "oldString": old, "newString": piece}, id=id)


def move(path: Path, lines: list[str], to: Path, id: str) -> Call:
    """A call that moves a file and adds a line at its end."""
    head = f"*** Begin Patch\n*** Update File: {path}\n*** Move to: {to}\n@@\n"
    body = "".join(f" {line}\n" for line in lines)
    return Call("apply_patch", {"patchText": f"{head}{body}+{id}\n*** End Patch"}, id=id)


def patch(path: Path, lines: list[str] | None, new: list[str] | None) -> str:
    """A patch from the one to the other."""
    if new is None:
        body = f"*** Delete File: {path}\n"
    elif lines is None:
        body = f"*** Add File: {path}\n" + "".join(f"+{line}\n" for line in new)
    else:
        changed = "".join(f"-{line}\n" for line in lines) + "".join(f"+{line}\n" for line in new)
        body = f"*** Update File: {path}\n@@\n{changed}"
    return f"*** Begin Patch\n{body}*** End Patch"


def differing(lines: list[str], new: list[str]) -> tuple[str, str]:
    """The pieces that differ, each with a line around it."""
    start = next((at for at, pair in enumerate(zip(lines, new, strict=False)) if pair[0] != pair[1]), None)
    if start is None:
        start = min(len(lines), len(new))
    end = 0
    while end < min(len(lines), len(new)) - start and lines[-1 - end] == new[-1 - end]:
        end += 1
    first, last = max(0, start - 1), max(0, end - 1)
    return text(lines[first : len(lines) - last]), text(new[first : len(new) - last])


def text(lines: list[str]) -> str:
    """Lines as a file has them."""
    return "".join(f"{line}\n" for line in lines)


def command(path: Path, how: str, at: int, token: str, *, gate: Path | None) -> str:
    """What bash is given; with a gate it waits until the gate is opened."""
    name, lines = shlex.quote(str(path)), lines_of(path)
    number = 1 + at % max(1, len(lines or ()))
    match how:
        case "insert" if lines:
            work = f"sed -i '{number}i {token}' {name}"
        case "replace" if lines:
            work = f"sed -i '{number}c {token}' {name}"
        case "rewrite":
            work = f"printf '%s\\n' {token} {token}x {token}y > {name}"
        case "delete":
            work = f"rm -f {name}"
        case "move":
            work = f"mv {name} {shlex.quote(str(path.with_name(MOVED)))}"
        case "mode":
            work = f"chmod {'-' if os.access(path, os.X_OK) else '+'}x {name}"
        case _:
            work = f"echo {token} >> {name}"
    begun = "" if gate is None else f"echo $$ > {gate}/pid; : > {gate}/begun; {WAITS.format(gate)}; "
    return f"{begun}mkdir -p {shlex.quote(str(path.parent))}; {work}"


def bash(line: str, id: str) -> Call:
    """A call that runs a command."""
    return Call("bash", {"command": line, "description": "work"}, id=id)
