"""How `run` and `resume` know the end of work that they show."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import holdfast
from holdfast.cli.run import follow
from holdfast.cli.run.interrupts import Interrupts
from holdfast.errors import ProviderError
from holdfast.feed.frame import Frame
from holdfast.feed.tail import Feed
from holdfast.provider.request.events import TextDelta, TextStart
from holdfast.runtime.answer import processor
from holdfast.schema.stored import Mark
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Events, Fail, Step, Wait
from tests.stories.world import World
from tests.until import until


@pytest.mark.parametrize(
    ("step", "code"),
    [(Step(Fail(ProviderError("no credit", kind="quota"))), 1), (Step(Say("All of it.")), 0)],
)
async def test_the_end_is_read_where_the_feed_is_late(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    step: Step,
    code: int,
) -> None:
    """Another process has ended its work, and its last records are not told of yet: they are shown all the
    same, once, and the exit code says how it ended.
    """
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(follow, "LINGER_S", 0.0)
    world = World(tmp_path, home)

    async def silent(*_: Any, **__: Any) -> AsyncIterator[list[Frame]]:
        await anyio.sleep_forever()
        yield []

    monkeypatch.setattr(Feed, "follow", silent)
    async with world.open(step) as (hf, _):
        session = await world.session(hf)
        ended = await follow.follow(
            hf, session, lambda: hf.sessions.prompt(session, "go"), "default", Interrupts(), idle="nothing"
        )

    assert ended == code
    shown = capsys.readouterr()
    assert (shown.out, "no credit" in shown.err) == (("", True) if code else ("All of it.\n", False))


async def test_what_was_shown_is_not_shown_again_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A feed that falls silent before the end: each part stands once, and the last records are there."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(follow, "LINGER_S", 0.0)
    world = World(tmp_path, home)
    real = Feed.follow

    async def falling_silent(self: Feed, *more: Any, **named: Any) -> AsyncIterator[list[Frame]]:
        async for frames in real(self, *more, **named):
            if any(frame.type == "session.idle" for frame in frames):
                await anyio.sleep_forever()
            yield frames

    monkeypatch.setattr(Feed, "follow", falling_silent)
    async with world.open(Step(Say("All of it."))) as (hf, _):
        session = await world.session(hf)
        ended = await follow.follow(
            hf, session, lambda: hf.sessions.prompt(session, "go"), "json", Interrupts(), idle="nothing"
        )

    events = [msgspec.json.decode(line) for line in capsysbinary.readouterr().out.splitlines()]
    parts = [str(event["properties"]) for event in events if event["type"] == "message.part.updated"]
    assert ended == 0
    assert len(parts) == len(set(parts))
    assert "'finish': 'stop'" in str(events[-3:])


async def test_an_end_that_comes_while_the_beginning_is_shown_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another process runs the session, and is interrupted when this one has shown the text so far."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(processor, "CHECKPOINT_MS", 1)
    world = World(tmp_path, home)
    half = TextStart(id="t"), TextDelta(id="t", text="Half of it")
    async with (
        world.open(Step(Events(half), Wait(anyio.Event()))) as (hf, _),
        holdfast.open(world.store) as other,
    ):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")

        async def is_saved() -> bool:
            parts = await hf.store.select("part", session=session, mark=Mark.OPEN)
            return any(b"Half of it" in each.data for each in parts)

        async def requests(session: str) -> list[Any]:
            await hf.sessions.interrupt(session)
            return []

        await until(is_saved)
        monkeypatch.setattr(other.sessions, "requests", requests)
        ended = await follow.follow(
            other, session, lambda: other.sessions.resume(session), "default", Interrupts(), idle="nothing"
        )

    shown = capsys.readouterr()
    assert (ended, shown.out) == (1, "Half of it\n")
    assert shown.err.splitlines()[-1:] == ["holdfast: The work was interrupted."]
