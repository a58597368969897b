"""What the application passes on and closes again: each fact is lost with one line of `app.py`."""

import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from holdfast import app
from holdfast.app import Holdfast
from holdfast.clock import SystemClock
from holdfast.context.system_context import SystemContext
from holdfast.errors import Refused
from holdfast.feed.tail import Feed
from holdfast.net.stream import Http
from holdfast.provider.accounts import credentials
from holdfast.provider.accounts.secret import Secret
from holdfast.provider.wire.wired import Wires
from holdfast.runtime.process.coordinator import Coordinator
from holdfast.sessions import workspaces
from holdfast.store.host import ThisHost
from holdfast.store.open import open_store
from holdfast.store.record import Resync
from holdfast.testing.mock_provider.script import Call
from holdfast.testing.scripted_provider import Step
from holdfast.workspace import host_settings
from tests.stories import inside
from tests.stories.epochs import Calendar, Fact, says
from tests.stories.tools import Deed
from tests.stories.wiring import outputs
from tests.stories.world import World

PLUGIN = """
import pathlib
from holdfast.context.source import Codec, ContextSource
here = pathlib.Path(__file__)
with here.with_suffix(".loads").open("a") as loads:
    loads.write("x")
async def load():
    return here.stem
sources = [ContextSource(key=f"plugin/{here.stem}", codec=Codec(str), load=load,
    baseline=lambda now: f"Plugin {now} speaks.", update=lambda _, now: now)]
"""


@pytest.fixture(autouse=True)
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning is given once in a process: each test begins anew."""
    monkeypatch.setattr(app, "_warned", {})


class Stepping(SystemClock):
    """A clock that a test can move on."""

    def __init__(self) -> None:
        self.ms = 0

    def boot_ms(self) -> int:
        return 1_000_000 + self.ms


async def test_plugins_are_those_that_settings_name_and_those_of_trusted_folders(world: World) -> None:
    """A plugin's code runs when it is loaded: that of a project that nobody trusts never does. Each is loaded
    once for a directory.
    """
    named = world.home / "named.py"
    local = world.project / ".holdfast" / "plugin" / "local.py"
    local.parent.mkdir(parents=True)
    for path in (named, local):
        path.write_text(PLUGIN)
    world.settings(plugin=[str(named)])

    async with world.open(*says("a", "b")) as (hf, script):
        for words in ("one", "two"):
            await hf.sessions.process(await world.session(hf), words)
        await hf.trust.decide(world.project, granted=True)
    assert ["Plugin named speaks." in each.system[-1] for each in script.requests] == [True, True]
    assert (named.with_suffix(".loads").read_text(), local.with_suffix(".loads").exists()) == ("x", False)

    async with world.open(*says("c")) as (hf, script):
        await hf.sessions.process(await world.session(hf), "three")
    assert "Plugin local speaks." in script.requests[0].system[-1]
    assert local.with_suffix(".loads").read_text() == "x"


async def test_trouble_is_told_to_the_operator_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Of a plugin that cannot be loaded, a hook that fails, and a source that cannot say what changed."""
    folder = world.home / ".config" / "holdfast" / "plugin"
    folder.mkdir(parents=True)
    (folder / "absent.py").write_text("raise OSError('no disk')")
    (folder / "bad.py").write_text(
        "async def experimental_chat_system_transform(input, output):\n    raise OSError('no luck')\n"
    )

    def update(before: str, now: str) -> str:
        raise OSError("no words")

    fact = Fact()
    with caplog.at_level(logging.WARNING, logger="holdfast"):
        async with world.open(*says("a", "b", "c")) as (hf, _):
            source = replace(fact.source(), update=update)
            hf.context.register("story/fact", lambda: SystemContext.make(source))
            session = await world.session(hf)
            for words in ("one", "two", "three"):
                fact.value = words
                await hf.sessions.process(session, words)
    for words in (
        "plugin absent, load: OSError: no disk",
        "OSError: no luck",
        "update text cannot be rendered",
    ):
        assert len([line for line in caplog.messages if words in line]) == 1, words


async def test_a_directory_is_known_by_its_real_name(world: World, tmp_path: Path) -> None:
    """What is registered under a link counts for sessions there, over what the application has."""
    link = tmp_path / "link"
    link.symlink_to(world.project)
    async with world.open(*says("a")) as (hf, script):
        hf.tools_at(link).register(Deed("linked").tool)
        hf.context_at(link).register("story/fact", lambda: SystemContext.make(Fact().source()))
        await hf.sessions.process(await world.session(hf), "go")
    (request,) = script.requests
    assert {"linked", "read", "recall"} <= {tool.name for tool in request.tools}
    assert "The fact is one." in request.system[-1]


async def test_no_permission_opens_the_folders_that_hold_secrets(world: World) -> None:
    """The store, credentials and settings, ours and OpenCode's, are closed to the model."""
    world.settings(permission={"*": "allow"})
    files = [
        world.home / folder / name / "secret.txt"
        for folder in (".local/share", ".config")
        for name in ("holdfast", "opencode")
    ]
    reads = [Call("read", {"filePath": str(file)}, id=f"r{index}") for index, file in enumerate(files)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a secret")
    async with world.open(Step(*reads), *says("ok")) as (hf, script):
        await hf.sessions.process(await world.session(hf), "go")
    assert ["a secret" in shown for shown in outputs(script.requests[1])] == [False] * 4


async def test_settings_that_change_count_a_second_later(world: World) -> None:
    """A prompt and its turns share one reading; a second after it the files are read again."""
    clock = Stepping()
    async with world.open(clock=clock) as (hf, _):
        session = await world.session(hf)
        seen = []
        for ms, name in ((0, "first"), (workspaces.FRESH_MS - 1, "second"), (1, "third")):
            clock.ms += ms
            world.settings(username=name)
            workspace = await inside.workspace(hf, session)
            seen.append(workspace.loaded.config.username)
    assert seen == ["first", "first", "third"]


async def test_a_caller_may_give_the_settings_itself(world: World) -> None:
    """Then the files of the person and of the project are not asked."""
    async with world.open() as (hf, _):
        found = await inside.workspace(hf, await world.session(hf))
    world.settings(model="nobody/nothing")
    async with world.open(*says("a"), workspace=lambda _: found) as (hf, script):
        await hf.sessions.process(await world.session(hf), "go")
    assert script.requests[0].model.id == "m"


async def test_settings_of_a_host_that_the_person_signed_in_to_count(world: World) -> None:
    """Through the application: as the last good copy has them, while it is young."""
    credentials.save_token("host.example", "HOST_KEY", Secret("T"))
    host_settings.keep("host.example", json.dumps({"config": {"permission": {"read": "deny"}}}))
    (world.project / "a.txt").write_text("contents")
    async with world.open(Step(Call("read", {"filePath": "a.txt"}, id="r")), *says("ok")) as (hf, script):
        await hf.sessions.process(await world.session(hf), "go")
    assert ["contents" in shown for shown in outputs(script.requests[1])] == [False]


async def test_live_events_of_the_engine_reach_who_follows_the_feed(world: World) -> None:
    """There is one feed: what is no record is told there too."""
    async with world.open(*says("a")) as (hf, _):
        session = await world.session(hf)
        told: list[str] = []

        async def follow(*, task_status: Any) -> None:
            task_status.started()
            async for frames in hf.feed.follow("beginning", session=session):
                told.extend(frame.type for frame in frames)
                if "session.idle" in told:
                    return

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                await group.start(follow)
                await hf.sessions.process(session, "go")
    assert "session.status" in told


async def test_the_engine_and_the_store_have_what_the_caller_gave(world: World) -> None:
    """One clock, one host, one feed and one source of ids for everybody; what can be fetched again lies in
    the cache folder.
    """
    clock, host = Stepping(), ThisHost()
    async with world.open(clock=clock, host=host) as (hf, _):
        engine = inside.engine(hf)
        for given in (hf, engine):
            assert (given.clock, given.host) == (clock, host)
        assert (engine.store, engine.feed, engine.mint) == (hf.store, hf.feed, hf.mint)
        assert (hf.store.clock, hf.store._host) == (clock, host)  # type: ignore[attr-defined]
        assert engine.cache == world.home / ".cache" / "holdfast"


async def test_what_was_removed_long_ago_is_forgotten_when_the_store_is_opened(world: World) -> None:
    """Then who followed since before it must load anew; a day later it is still known."""
    clock = Calendar()
    async with world.open(clock=clock) as (hf, _):
        cursor = await hf.store.head()
        await hf.sessions.remove(await world.session(hf))
    seen = []
    for days in (1, 31):
        clock.days = days
        async with world.open(clock=clock) as (hf, _):
            seen.append(isinstance(await hf.store.changes(cursor), Resync))
    assert seen == [False, True]


async def test_a_session_whose_directory_is_gone_can_only_be_read(world: World) -> None:
    """Its messages are there; a prompt is refused, with what would help."""
    async with world.open(*says("a")) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
    world.project.rmdir()
    async with world.open() as (hf, _):
        assert len((await hf.sessions.messages(session)).messages) == 2
        with pytest.raises(Refused, match=f"is not here, so session {session} can only be read"):
            await hf.sessions.process(session, "two")


def recorded(
    monkeypatch: pytest.MonkeyPatch, owner: Any, verb: str, into: list[str], name: str, *, broken: bool
) -> None:
    """Note when a verb is called; one that is broken fails."""
    plain: Callable[[Any], Awaitable[None]] = getattr(owner, verb)

    async def call(self: Any) -> None:
        await anyio.lowlevel.checkpoint()
        if broken:
            raise OSError("no luck")
        into.append(name)
        await plain(self)

    monkeypatch.setattr(owner, verb, call)


async def opened(
    world: World, monkeypatch: pytest.MonkeyPatch, closed: list[str], broken: str | None = None
) -> Holdfast:
    """A runtime with every room open, which notes in what order they are closed; one may be `broken`."""
    host = ThisHost()
    store = await open_store(world.store, host=host)
    rooms: list[tuple[Any, str, str]] = [
        (Coordinator, "close", "coordinator"),
        (Wires, "aclose", "wires"),
        (Feed, "close", "feed"),
        (type(store), "close", "store"),
    ]
    for owner, verb, name in rooms:
        recorded(monkeypatch, owner, verb, closed, name, broken=name == broken)

    async def aclose(self: Http) -> None:
        closed.append("http" if self is hf._http else "http of the wires")

    monkeypatch.setattr(Http, "aclose", aclose)
    hf = Holdfast(store, SystemClock(), host)
    hf._prompting_now()
    hf._http_now()
    workspace = await inside.workspace(hf, await world.session(hf))
    hf._provider_of(workspace)
    wires = hf._wires
    hf._provider_of(workspace)
    assert hf._wires is wires is not None, "connections are shared"
    return hf


ORDER = ["coordinator", "wires", "http of the wires", "http", "feed", "store"]


async def test_every_room_is_closed_the_highest_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where whoever leaves is cancelled meanwhile."""
    closed: list[str] = []
    hf = await opened(world, monkeypatch, closed)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await hf.close()
    assert closed == ORDER


async def test_a_room_that_cannot_be_closed_does_not_leave_the_store_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything else is closed, and the error is the caller's."""
    closed: list[str] = []
    hf = await opened(world, monkeypatch, closed, broken="wires")
    with pytest.raises(OSError, match="no luck"):
        await hf.close()
    assert closed == ["coordinator", "http", "feed", "store"]
