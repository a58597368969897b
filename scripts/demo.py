"""Show Holdfast at work on a temporary home: a repair with a failing test, a kill -9, its continuation.

The model is scripted: a small server on this machine that speaks Chat Completions. `--model PROVIDER/MODEL`
asks a real one instead, for the first turn.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.testing.mock_provider import Call, MockProvider, Reply, Say, Trouble

PYTHON = "python3"
TEST = """import unittest

from parse import parse


class Parse(unittest.TestCase):
    def test_an_empty_text_has_no_word(self):
        self.assertEqual(parse(""), "")
"""
COMMAND = str(Path(sys.executable).with_name("holdfast"))


def say(text: str) -> None:
    """What happens now."""
    print(f"\n\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


class Stage:
    """A home, a project and a store of their own."""

    def __init__(self, place: Path) -> None:
        self.project = place / "project"
        self.project.mkdir(parents=True)
        (self.project / "parse.py").write_text("def parse(text):\n    return text.split()[0]\n")
        (self.project / "test_parse.py").write_text(TEST)
        for command in (["git", "init", "-q", "."], ["git", "add", "."]):
            subprocess.run(command, cwd=self.project, check=True)
        self.home = place / "home"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST", "OPENCODE"))
        }
        self.environment = {
            **kept,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
        }

    def settings(self, url: str) -> None:
        """The person's settings: the scripted provider."""
        folder = self.home / "config" / "holdfast"
        folder.mkdir(parents=True)
        model = {"limit": {"context": 100_000, "output": 8_000}, "cost": {"input": 1, "output": 5}}
        entry = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{url}/v1"},
            "models": {"demo": model},
        }
        settings = {
            "model": "scripted/demo",
            "provider": {"scripted": entry},
            "agent": {"title": {"disable": True}},
            # In the box, where this host can build one: `holdfast info` says whether it can.
            "permission": {"bash": {f"{PYTHON} *": "allow"}},
        }
        (folder / "holdfast.json").write_text(json.dumps(settings, indent=2))

    async def run(self, *arguments: str, quiet: bool = False) -> str:
        """A command as a person would type it."""
        print(f"$ holdfast {' '.join(arguments)}", flush=True)
        done = await asyncio.to_thread(
            subprocess.run,
            [COMMAND, *arguments],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise SystemExit(f"holdfast {' '.join(arguments)} failed: {done.stdout}{done.stderr}")
        if not quiet:
            print(done.stdout + done.stderr, end="", flush=True)
        return done.stdout

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """A command that runs on."""
        print(f"$ holdfast {' '.join(arguments)} &", flush=True)
        return subprocess.Popen(
            [COMMAND, *arguments],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )


async def tour(stage: Stage, mock: MockProvider, model: str | None) -> None:
    """The tour."""
    say("1. A repair: the model reads, sees a test fail in the box, edits, and sees it pass.")
    test = {"command": f"{PYTHON} -m unittest -q", "description": "Runs the tests"}
    edit = {
        "filePath": "parse.py",
        "oldString": "    return text.split()[0]",
        "newString": '    words = text.split()\n    return words[0] if words else ""',
    }
    mock.play(
        Reply(
            (
                Say("Let me look at parse.py, and at what the test says."),
                Call("read", {"filePath": "parse.py"}),
            )
        ),
        Reply((Call("bash", test),)),
        Reply((Say("split() gives an empty list, and [0] raises IndexError."), Call("edit", edit))),
        Reply((Call("bash", test),)),
        Reply((Say("Mended: an empty text has no first word, so parse() gives an empty string for it."),)),
    )
    chosen = ("-m", model) if model else ()
    await stage.run("run", *chosen, "Why does parse fail for an empty file? Mend it.")
    await asyncio.to_thread(subprocess.run, ["git", "diff", "--stat"], cwd=stage.project, check=True)
    if model is None:
        listed = json.loads(await stage.run("session", "list", "--format", "json", quiet=True))
        shown = json.loads(
            await stage.run("session", "show", listed[0]["id"], "--format", "json", quiet=True)
        )
        ran = [
            part["state"]["metadata"]
            for message in shown["messages"]
            for part in message["parts"]
            if part.get("tool") == "bash"
        ]
        first, second = (each["exit"] for each in ran)
        print(
            f"The tests ended with {first} before the edit, {second} after it. Box: {ran[0].get('sandbox')}."
        )
        if (first == 0, second == 0) != (False, True):
            raise SystemExit("the repair was not made")

    say("2. The next answer is cut by kill -9 in its middle.")
    mock.play(
        Trouble(
            "stall",
            after=8,
            reply=Reply((Say("One more thing: parse() is called with None in one place."),)),
        )
    )
    runner = stage.start("run", "--continue", "Is there more to do?")
    await mock.stalled.wait()
    await asyncio.sleep(1.3)  # An open text is saved within a second.
    runner.send_signal(signal.SIGKILL)
    await asyncio.to_thread(runner.communicate)
    mock.release()
    listed = json.loads(await stage.run("session", "list", "--format", "json", quiet=True))
    session = listed[0]["id"]
    await stage.run("session", "show", session)

    say("3. Another process goes on from what was saved.")
    mock.play(Reply((Say(" There the caller should check first."),)))
    await stage.run("session", "resume", session)
    last = mock.requests[-1].json["messages"]
    print(f"The model was shown {len(last)} messages, among them what it had said before the kill.")
    await stage.run("doctor")

    say("4. Search, fork, export, import into a plain tree of JSON files.")
    await stage.run("session", "search", "IndexError")
    await stage.run("session", "fork", session)
    file = str(stage.home / "session.json")
    tree = f"file://{stage.home}/tree"
    await stage.run("session", "export", session, "--output", file)
    await stage.run("--store", tree, "session", "import", file)
    await stage.run("--store", tree, "session", "list", "--all")

    say("5. What is in force here, what the model is sent, and what it cost.")
    await stage.run("config")
    await stage.run("session", "context", session)
    info = json.loads(await stage.run("session", "show", session, "--format", "json", quiet=True))["info"]
    print(f"{info['tokens']['input'] + info['tokens']['output']} tokens, ${info['cost']:.6f}.")


@contextlib.contextmanager
def temporary() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def main() -> None:
    """Set the stage, and show."""
    model = sys.argv[2] if sys.argv[1:2] == ["--model"] and len(sys.argv) > 2 else None
    began = time.monotonic()
    with temporary() as place:
        async with MockProvider() as mock:
            stage = Stage(place)
            stage.settings(mock.url)
            await tour(stage, mock, model)
        say(f"Done in {time.monotonic() - began:.1f} s; everything was in {place} and is gone now.")


if __name__ == "__main__":
    asyncio.run(main())
