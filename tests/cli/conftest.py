"""The command line as a person has it: real processes, a data directory of its own, a project to stand in."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import holdfast
from holdfast.app import Holdfast
from tests.sessions.filling import answer, ask


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

    def __call__(self, *arguments: str, text: str | None = None) -> Done:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HOLDFAST_STORE": self.store,
            "HOLDFAST_FAKE_VCS": "git",
            **self.environment,
        }
        command = [str(Path(sys.executable).with_name("holdfast")), *arguments]
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
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


# Each test starts several processes; over the files store they are a long run.
@pytest.fixture(params=["sqlite", pytest.param("file", marks=pytest.mark.long)])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """A shell over each store that needs no server."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    return Shell(tmp_path / "home", folder, f"{request.param}://{tmp_path}/data/store")
