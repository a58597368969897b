"""The command line as a person has it: real processes, a data directory of its own, a project to stand in."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest

import holdfast
from holdfast.app import Holdfast
from holdfast.cli.complaint import wants_json
from holdfast.testing.mock_provider import MockProvider
from tests.sessions.filling import answer, ask

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))


class Done(msgspec.Struct):
    """What a command did."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its answer, for programs."""
        return json.loads(self.out)


class Shell:
    """Runs `holdfast` in a project, on a store."""

    def __init__(self, home: Path, folder: Path, store: str) -> None:
        self.home, self.folder, self.store = home, folder, store
        self.environment: dict[str, str] = {}

    def variables(self) -> dict[str, str]:
        """What its commands see of the environment."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HOLDFAST_STORE": self.store,
            "HOLDFAST_FAKE_VCS": "git",
            **self.environment,
        }

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
        """A command that runs on."""
        return subprocess.Popen(
            [HOLDFAST, *arguments],
            cwd=self.folder,
            env=self.variables(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def sh(self, script: str) -> Done:
        """A line of shell, where `holdfast` is ours. What it prints need not be UTF-8."""
        ran = subprocess.run(
            ["/bin/sh", "-c", f'holdfast() {{ {HOLDFAST} "$@"; }}\n{script}'],
            cwd=self.folder,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Done(ran.returncode, ran.stdout.decode("latin-1"), ran.stderr.decode("latin-1"))

    def __call__(self, *arguments: str, text: str | None = None) -> Done:
        ran = subprocess.run(
            [HOLDFAST, *arguments],
            cwd=self.folder,
            env=self.variables(),
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Done(ran.returncode, ran.stdout, ran.stderr)

    def fails(self, *arguments: str, code: int = 1) -> str:
        """One clear line on standard error, nothing on standard output, and the exit code."""
        done = self(*arguments)
        assert done.code == code, done
        assert done.out == ""
        assert "Traceback" not in done.err
        lines = done.err.splitlines()
        if wants_json(arguments):
            return str(json.loads(lines[-1])["data"]["message"])
        assert [line for line in lines if line.startswith("holdfast: ")] == lines[-1:], done.err
        return lines[-1].removeprefix("holdfast: ")

    def make(self, work: Callable[[Holdfast], Any]) -> Any:
        """Do something through the library first."""

        async def main() -> Any:
            os.environ["HOLDFAST_FAKE_VCS"] = "git"
            try:
                async with holdfast.open(self.store) as hf:
                    return await work(hf)
            finally:
                del os.environ["HOLDFAST_FAKE_VCS"]

        return anyio.run(main)

    def conversation(self, title: str = "A talk", words: str = "please fix the frobnicator") -> str:
        """A session with a question and its answer."""

        async def work(hf: Holdfast) -> str:
            session = await hf.sessions.create(directory=self.folder, title=title)
            asked = await ask(hf, session.id, words)
            await answer(hf, session.id, asked.id, "it is fixed")
            return session.id

        return str(self.make(work))


def configured(place: Path, *mocks: MockProvider, **more: Any) -> Shell:
    """A person whose settings name providers on this machine: acme, and beta where there are two."""
    for name in ("home", "project"):
        (place / name).mkdir()
    made = Shell(place / "home", place / "project", f"sqlite://{place}/store.db")
    settings(made, *mocks, **more)
    return made


def settings(shell: Shell, *mocks: MockProvider, **more: Any) -> None:
    """The person's settings."""
    folder = shell.home / ".config/holdfast"
    folder.mkdir(parents=True, exist_ok=True)
    providers = {
        name: {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{mock.url}/v1", "apiKey": "sk-secret-of-the-mock"},
            "models": {"m": {"limit": {"context": 100_000, "output": 8_000}}},
        }
        for name, mock in zip(("acme", "beta"), mocks, strict=False)
    }
    value = {"model": "acme/m", "provider": providers, "agent": {"title": {"disable": True}}, **more}
    (folder / "holdfast.json").write_text(json.dumps(value))


async def said(shell: Shell, *arguments: str, text: str = "") -> Done:
    """Run a command while the provider answers in this process."""
    return await anyio.to_thread.run_sync(lambda: shell(*arguments, text=text))


async def ended(process: "subprocess.Popen[bytes]") -> Done:
    """What a command that ran on did in the end."""
    out, err = await anyio.to_thread.run_sync(lambda: process.communicate(timeout=60))
    return Done(process.returncode, out.decode(), err.decode())


@pytest.fixture
async def mock() -> AsyncIterator[MockProvider]:
    """A provider on this machine."""
    async with MockProvider() as provider:
        yield provider


# Each test starts several processes; over the files store they are a long run.
@pytest.fixture(params=["sqlite", pytest.param("file", marks=pytest.mark.long)])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """A shell over each store that needs no server."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    return Shell(tmp_path / "home", folder, f"{request.param}://{tmp_path}/data/store")
