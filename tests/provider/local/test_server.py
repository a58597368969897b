"""The life of a local model's server, with a stand-in for the model: real processes, pipes and HTTP."""

import os
import select
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from holdfast.errors import ProviderError
from holdfast.net.stream import Http
from holdfast.provider.local import installable, talk
from holdfast.provider.local.installable import SMOLLM2
from holdfast.provider.local.server import LocalServers
from holdfast.provider.request.events import Failed, ProviderEvent
from holdfast.provider.request.request import Request, Text, User
from holdfast.provider.wire.openai_chat.adapter import OpenAIChatAdapter
from holdfast.provider.wire.wire import Endpoint
from holdfast.testing.clock import FakeClock
from tests.provider.local.stand_in import MODEL, OURS, command
from tests.provider.talking import text_of

REQUEST = Request(model=MODEL, messages=(User(content=(Text(text="Hello"),)),))


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the model is: the stand-in does not read it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = installable.file(SMOLLM2)
    path.parent.mkdir(parents=True)
    path.touch()
    return path


@asynccontextmanager
async def local(how: str, *, start_s: float = 20.0) -> AsyncIterator[LocalServers]:
    servers = LocalServers(command(how), start_s=start_s)
    try:
        yield servers
    finally:
        await servers.aclose()


async def hear(servers: LocalServers, endpoint: Endpoint = OURS) -> list[ProviderEvent]:
    http = Http()
    stream = talk.stream(http, OpenAIChatAdapter(), REQUEST, endpoint, FakeClock(), servers=servers)
    try:
        async with aclosing(stream) as events:
            return [event async for event in events]
    finally:
        await http.aclose()


def failure(events: list[ProviderEvent]) -> tuple[str, bool, str]:
    last = events[-1]
    assert isinstance(last, Failed)
    return last.error.kind, last.error.retryable, str(last.error)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("dead", ("connection", True, "died at its start (exit code 7); is there memory enough?")),
        ("garbled", ("connection", True, "died at its start (exit code 0); is there memory enough?")),
        ("mute", ("timeout", True, "was not ready within 0 s; try again")),
        ("broken", ("other", False, "the file is odd; `holdfast models install smollm2` checks it")),
        ("bare", ("unsupported", False, "needs an optional part: pip install 'holdfast[local]'")),
    ],
)
async def test_a_server_that_does_not_start_is_one_clear_event(
    how: str, expected: tuple[str, bool, str]
) -> None:
    """Each way of not starting is the event `Failed` with a line that says what to do."""
    async with local(how, start_s=0.4 if how == "mute" else 20) as servers:
        kind, retryable, said = failure(await hear(servers))

    assert (kind, retryable, said[-len(expected[2]) :]) == expected


async def test_a_model_that_is_not_installed_starts_nothing(file: Path) -> None:
    """Without the file the command that installs it is named."""
    file.unlink()

    async with local("good") as servers:
        assert failure(await hear(servers)) == (
            "unsupported",
            False,
            "smollm2 is not installed; run `holdfast models install smollm2`",
        )


async def test_a_crash_says_so_and_the_next_request_starts_anew() -> None:
    """A server that dies in a request is told apart from a network's trouble, and is replaced."""
    async with local("crash") as servers:
        died = failure(await hear(servers))
        servers._command = command("good")
        again = await hear(servers)

    assert died == (
        "connection",
        True,
        "the server of local/smollm2 died (exit code 9); ask again, and a new one is started",
    )
    assert text_of(again) == "Ahoy"


async def test_sessions_share_one_server() -> None:
    """Two that ask at once get the same address and key; whoever does not know the key is refused."""
    found: list[Endpoint] = []
    async with local("good") as servers:

        async def ask() -> None:
            found.append(await servers.endpoint(MODEL, OURS))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
        texts = [text_of(await hear(servers)) for _ in range(2)]
        stranger = failure(await hear(servers, Endpoint(base_url=found[0].base_url, key="guess")))

    assert found[0] == found[1]
    assert texts == ["Ahoy", "Ahoy"]
    assert stranger[0] == "auth"


async def test_the_key_is_nowhere_to_be_read() -> None:
    """It stands in no argument, environment or repr."""
    async with local("good") as servers:
        endpoint = await servers.endpoint(MODEL, OURS)
        [running] = servers._running.values()
        process = Path(f"/proc/{running.process.pid}")
        seen = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        assert endpoint.key is not None
        assert endpoint.key.encode() not in seen
        assert endpoint.key not in f"{endpoint} {running}"


async def test_closing_ends_the_server() -> None:
    """When the owner closes, the process is gone."""
    async with local("good") as servers:
        await servers.endpoint(MODEL, OURS)
        [running] = servers._running.values()

    assert running.process.returncode == 0


@pytest.mark.ci
async def test_a_cancelled_start_leaves_no_process() -> None:
    """Whoever stops waiting for a server that is not ready leaves none behind."""
    before = children()
    async with local("mute") as servers:
        with anyio.move_on_after(0.2) as scope:
            await servers.endpoint(MODEL, OURS)

        assert scope.cancelled_caught
        assert servers._running == {}
        assert children() <= before


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


OWNER = """
import anyio, os, signal, sys
from holdfast.provider.local.server import LocalServers
from tests.provider.local.stand_in import MODEL, OURS, command

async def main():
    servers = LocalServers(command("good"))
    await servers.endpoint(MODEL, OURS)
    [running] = servers._running.values()
    print(running.process.pid, flush=True)
    sys.stdin.read()

anyio.run(main)
"""


@pytest.mark.ci
def test_the_server_ends_with_its_owner() -> None:
    """However the owner ends, even killed, its server ends too."""
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
    ) as owner:
        assert owner.stdout is not None
        server = os.pidfd_open(int(owner.stdout.readline()))
        try:
            owner.kill()
            ended, _, _ = select.select([server], [], [], 20)
        finally:
            os.close(server)

    assert ended == [server]


async def test_other_endpoints_pass_through() -> None:
    """An endpoint that is not ours is used as it is, and starts nothing."""
    elsewhere = Endpoint(base_url="http://127.0.0.1:9/v1", key="k")

    async with local("dead") as servers:
        assert await servers.endpoint(MODEL, elsewhere) is elsewhere
        error = ProviderError("x", kind="connection")
        assert await servers.explained(MODEL, error) is error
