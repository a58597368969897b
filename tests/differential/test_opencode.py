"""The same story through OpenCode and through Holdfast: the files end equal, and what differs is known.

`npm install opencode-ai@1.18.33`, in a folder of its own, installs OpenCode; its program has to be on PATH.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from holdfast.testing.mock_provider import MockProvider, Received, Reply, Say
from tests.differential import story
from tests.differential.story import Told

VERSION = "1.18.33"
WITHIN_S = 240
# What keeps OpenCode from the network.
OFFLINE = {
    f"OPENCODE_DISABLE_{name}": "1"
    for name in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE")
}

KNOWN: dict[str, tuple[str, str]] = {
    "edit_unread": ("completed", "error"),
    "unknown": ("completed", "error"),
}
"""Calls that end otherwise, in OpenCode and in Holdfast; docs/parity.md has the reasons."""


class Titled(MockProvider):
    """Answers requests for a title, which have no tools, beside the script."""

    async def _answer(self, received: Received, *streams: Any) -> bool:
        if b'"tools"' not in received.body:
            self._turns.appendleft(Reply((Say("A title"),)))
        return await super()._answer(received, *streams)


class Program:
    """A home, a project, and how the story went in it: by call, how it ended and what was answered."""

    def __init__(self, top: Path) -> None:
        self.home, self.project, self.outside = top / "home", top / "project", top / "outside"
        for folder in (self.home, self.project):
            folder.mkdir(parents=True)
        story.prepare(self.project, self.outside)
        subprocess.run(["git", "init", "--quiet", str(self.project)], check=True)
        self.ended: dict[str, str] = {}
        self.said: dict[str, str] = {}

    async def tell(
        self, mock: MockProvider, command: Sequence[str], calls: Sequence[Told], env: dict[str, str]
    ) -> None:
        """Let the program work through the calls."""
        mock.play(*(Reply((told.call,)) for told in calls), Reply((Say("Done."),)))
        path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"  # It has ripgrep.
        env = {"PATH": path, "HOME": str(self.home), "TERM": "dumb", **env}
        done = await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                [*command, "--format", "json", "Work through it."],
                cwd=self.project,
                env=env,
                timeout=WITHIN_S,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        )
        assert mock.unplayed == (), (done.stdout[-2_000:], done.stderr[-2_000:])
        assert mock.unexpected == []
        for part in tool_parts(done.stdout):
            name, state = part["callID"].removeprefix("call_"), part["state"]
            self.ended[name] = state["status"]
            said = state.get("output") or state.get("error") or ""
            self.said[name] = said.replace(str(self.project), "PROJECT").replace(str(self.outside), "OUTSIDE")

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(top.parent)): path.read_bytes()
            for top in (self.project, self.outside)
            for path in sorted(top.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }


def tool_parts(lines: str) -> Iterator[dict[str, Any]]:
    """The tool calls among the events that both programs print."""
    for line in lines.splitlines():
        event = json.loads(line)
        part = event.get("part") or event.get("properties", {}).get("part") or {}
        if part.get("type") == "tool":
            yield part


def facts(name: str, said: str) -> list[str]:
    """What an answer says, apart from its words: numbered lines, paths, names in a folder."""
    match name.split("_", maxsplit=1)[0]:
        case "read" | "p" if "<type>directory" in said:
            return sorted(line for line in said.splitlines() if re.fullmatch(r"[\w.-]+/?", line))
        case "read" | "p" | "grep":
            return re.findall(r"^(?:\d+:|  Line \d+:) .*$|^PROJECT/\S+:$", said, re.MULTILINE)
        case "glob":
            return sorted(re.findall(r"^PROJECT/\S+$", said, re.MULTILINE))
        case _:
            return []


def settings(url: str) -> str:
    limit = {"context": 200_000, "output": 8_000}
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Mock",
        "models": {name: {"name": name, "limit": limit} for name in (story.EDITS, story.PATCHES)},
        "options": {"baseURL": f"{url}/v1", "apiKey": "sk-mock"},
    }
    model = f"mock/{story.EDITS}"
    permission = {"*": "allow", "external_directory": "deny"}
    others = {"autoupdate": False, "share": "disabled", "snapshot": False, "lsp": False, "formatter": False}
    return json.dumps(
        {
            "model": model,
            "small_model": model,
            "provider": {"mock": entry},
            "permission": permission,
            **others,
        }
    )


@pytest.mark.long
@pytest.mark.needs("opencode", "git")
async def test_the_files_end_equal_and_calls_end_alike(tmp_path: Path) -> None:
    """More than forty calls of two models, in each program alone; what was read and found is the same too."""
    program = shutil.which("opencode")
    assert program is not None
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.strip() == VERSION
    theirs, ours = Program(tmp_path / "opencode"), Program(tmp_path / "holdfast")
    async with Titled() as mock:
        config = settings(mock.url)
        for model, calls in ((story.EDITS, story.edits), (story.PATCHES, story.patches)):
            command = [program, "run", "--model", f"mock/{model}"]
            env = {"OPENCODE_CONFIG_CONTENT": config, **OFFLINE}
            await theirs.tell(mock, command, calls(theirs.project, theirs.outside), env)
            command = [sys.executable, "-m", "holdfast", "run", "--model", f"mock/{model}"]
            env = {"HOLDFAST_CONFIG_CONTENT": config}
            await ours.tell(mock, command, calls(ours.project, ours.outside), env)

    said = (
        f"= {name}\n- OpenCode\n{theirs.said[name]}\n- Holdfast\n{ours.said[name]}\n" for name in ours.said
    )
    (tmp_path / "answers.txt").write_text("".join(said))  # For who renews the table in docs/parity.md.
    assert ours.files() == theirs.files()
    assert len(ours.ended) == len(story.edits(tmp_path, tmp_path)) + len(story.patches(tmp_path, tmp_path))
    both = {name: (theirs.ended.get(name), end) for name, end in ours.ended.items()}
    assert {name: ends for name, ends in both.items() if ends[0] != ends[1]} == KNOWN
    alike = [name for name in both if name not in {*KNOWN, "read_old"}]
    assert {name: facts(name, ours.said[name]) for name in alike} == {
        name: facts(name, theirs.said[name]) for name in alike
    }
