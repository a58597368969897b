"""`hf.terminals`: programs of the user on terminals, through the front door."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

import holdfast
from holdfast import (
    ContextError,
    InvalidInput,
    Location,
    NotFound,
    PtyCreated,
    PtyDeleted,
    PtyExited,
    PtyUpdated,
)
from holdfast.app import Holdfast
from holdfast.schema.terminal_event import OfPty, PtyExitProperties, PtyProperties
from holdfast.sessions import terminals
from tests.location.terminal.desk import PATIENCE_S, runs
from tests.stories.world import World
from tests.until import until

NAMES = (
    "CALLER",
    "PLUGIN",
    "HOST",
    "TERM",
    "OPENCODE_TERMINAL",
    "HOLDFAST_TERMINAL",
    "PWD",
    "OPENAI_API_KEY",
)
PLUGIN = """
class Team:
    async def shell_env(self, input, output):
        for name in ("PLUGIN", "HOST", "TERM"):
            output.env[name] = f"plugin in {input.cwd}"


def plugin(context):
    return Team()
"""


async def printed(hf: Holdfast, id: str, wanted: str = "\0") -> str:
    """What is printed until a text was, or until the end."""
    text = ""
    with anyio.fail_after(PATIENCE_S):
        async with aclosing(hf.terminals.follow(id)) as pieces:
            async for piece in pieces:
                text += piece.text
                if wanted in text:
                    break
    return text


async def test_the_environment_is_the_caller_s_then_the_host_s_then_ours(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the user's keys; plugins and the host are given the Location and the folder, resolved."""
    for name, value in {"OPENAI_API_KEY": "secret", "CALLER": "user", "PLUGIN": "user"}.items():
        monkeypatch.setenv(name, value)
    folder = world.home / ".config" / "holdfast" / "plugin"
    folder.mkdir()
    (folder / "team.py").write_text(PLUGIN)
    (world.project / "below").mkdir()
    (world.project / "link").symlink_to("below")
    below = str(world.project / "below")
    asked: list[tuple[Location, str]] = []

    async def overlay(location: Location, cwd: str) -> Mapping[str, str]:
        asked.append((location, cwd))
        return {"HOST": "host", "TERM": "host"}

    async with world.open(pty_environment=overlay) as (hf, _):
        script = "; ".join(f'echo "{name}=${name}"' for name in NAMES)
        made = await hf.terminals.create(
            "/bin/sh",
            ["-c", script],
            directory=world.project,
            cwd="link",
            env={"CALLER": "caller", "PLUGIN": "caller", "HOST": "caller", "TERM": "caller"},
        )
        seen = dict(line.split("=", 1) for line in (await printed(hf, made.id)).splitlines())

    assert seen == {
        "CALLER": "caller",
        "PLUGIN": f"plugin in {below}",
        "HOST": "host",
        "TERM": "xterm-256color",
        "OPENCODE_TERMINAL": "1",
        "HOLDFAST_TERMINAL": "1",
        "PWD": below,
        "OPENAI_API_KEY": "",
    }
    assert [(location.directory, cwd) for location, cwd in asked] == [(str(world.project), below)]


async def test_a_terminal_is_announced_found_changed_and_removed(world: World) -> None:
    """The user's shell, with the size that was set; each event says where it happened."""
    world.settings(shell="/bin/sh")
    (world.home / ".profile").write_text("PS1='ready> '\n")
    async with world.open() as (hf, _):
        follower = hf.feed.follow(types=["pty.created", "pty.updated", "pty.exited", "pty.deleted"])
        frames: list[Any] = []

        async def follow() -> None:
            async for batch in follower:
                frames.extend(batch)

        async with anyio.create_task_group() as following:
            following.start_soon(follow)
            await until(lambda: len(hf.feed._broadcast))
            made = await hf.terminals.create(directory=world.project, title="mine")
            await printed(hf, made.id, "ready> ")
            assert await hf.terminals.rename(made.id, "ours") == replace(made, title="ours")
            assert await hf.terminals.resize(made.id, rows=11, cols=22) == replace(made, title="ours")
            assert await hf.terminals.list(directory=world.project) == [replace(made, title="ours")]
            assert await hf.terminals.list(directory=world.home) == []
            await hf.terminals.write(made.id, "stty size; exit 5\n")
            with anyio.fail_after(PATIENCE_S):
                ended = await hf.terminals.wait(made.id)
            assert ended == await hf.terminals.get(made.id)
            assert "\r\n11 22\r\n" in (await hf.terminals.read(made.id)).text
            await hf.terminals.remove(made.id)
            assert await hf.terminals.list() == []
            await until(lambda: len(frames) == 4)
            following.cancel_scope.cancel()

    assert (made.command, made.args, made.cwd) == ("/bin/sh", ["-l"], str(world.project))
    assert ended == replace(made, title="ours", status="exited", exit_code=5)
    assert [replace(frame.event(), id=None) for frame in frames] == [
        PtyCreated(properties=PtyProperties(info=made)),
        PtyUpdated(properties=PtyProperties(info=replace(made, title="ours"))),
        PtyExited(properties=PtyExitProperties(id=made.id, exit_code=5)),
        PtyDeleted(properties=OfPty(id=made.id)),
    ]
    assert {frame.directory for frame in frames} == {str(world.project)}


async def test_what_is_wrong_is_refused_in_one_line(world: World) -> None:
    """An unknown terminal, a folder that is not there, what is no text, a host that fails."""
    overlay: dict[Any, Any] = {}

    async def host(_location: Location, _cwd: str) -> Mapping[str, str]:
        if "hang" in overlay:
            await anyio.sleep_forever()
        if "fail" in overlay:
            raise RuntimeError("no such host")
        return overlay

    async with world.open(pty_environment=host) as (hf, _):
        here = hf.terminals
        made = await here.create("cat", directory=world.project)
        for wrong in (
            here.create("cat", directory=world.project, cwd="nowhere"),
            here.create("cat", directory=world.project / "nowhere"),
            here.create("cat", directory=world.project, cwd="a\0b"),
            here.create("cat", "args", directory=world.project),
            here.create("cat", [5], directory=world.project),  # type: ignore[list-item]
            here.create("cat", directory=world.project, env={"A": 5}),  # type: ignore[dict-item]
            here.write(made.id, "\ud800"),
            here.write(made.id, 5),  # type: ignore[arg-type]
            here.read(made.id, 1_000),
            anext(here.follow(made.id, -2)),
            here.rename(made.id, ""),
            here.resize(made.id, rows=0, cols=1),
        ):
            with pytest.raises(InvalidInput) as refused:
                await wrong
            assert "\n" not in str(refused.value)
        for unknown in (
            *(here.get("pty_x"), here.rename("pty_x", "x"), here.resize("pty_x", rows=1, cols=1)),
            *(here.write("pty_x", "x"), here.read("pty_x"), anext(here.follow("pty_x")), here.wait("pty_x")),
            here.remove("pty_x"),
        ):
            with pytest.raises(NotFound, match="terminal pty_x does not exist in this process"):
                await unknown
        for fault in ({"A": "secret\0"}, {"fail": "1"}, {"hang": "1"}):
            overlay = fault
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(terminals, "OVERLAY_S", 0.01 if "hang" in fault else 10.0)
                with pytest.raises(
                    ContextError, match="the environment that the host adds to terminals"
                ) as error:
                    await here.create("cat", directory=world.project)
            assert "secret" not in str(error.value)
        assert await here.list() == [made]

    assert not runs(made.pid)


async def test_a_closed_runtime_has_no_terminals(world: World) -> None:
    """They end with it, and so does every stream."""
    ended = anyio.Event()
    async with anyio.create_task_group() as following:
        async with holdfast.open(world.store) as hf:
            made = await hf.terminals.create("cat", directory=world.project)

            async def follow() -> None:
                async for _ in hf.terminals.follow(made.id, -1):
                    pass
                ended.set()

            following.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(PATIENCE_S):
            await ended.wait()

    assert not runs(made.pid)
