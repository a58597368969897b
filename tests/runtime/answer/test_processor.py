"""What a provider's events become, with a real store: which parts, in which order, in how many commits."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from holdfast.clock import SystemClock
from holdfast.feed.tail import Feed
from holdfast.provider.request.events import (
    ProviderEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCalled,
    ToolInputStart,
    ToolResulted,
)
from holdfast.runtime.answer import processor
from holdfast.runtime.answer.processor import Processor
from holdfast.runtime.calls.recorded_call import RecordedCall
from holdfast.runtime.engine.recorder import Recorder
from holdfast.schema.ids import Mint
from holdfast.schema.message import AssistantMessage
from holdfast.store.batch import Batch, Receipt
from holdfast.store.query import MessageQuery
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.hosts import FakeHost
from holdfast.testing.store_contract.build import S1, assistant, session, user
from holdfast.testing.store_contract.world import granted
from tests.until import until


class Stage(NamedTuple):
    store: SqliteStore
    processor: Processor
    commits: list[list[str]]
    """The kinds that each commit wrote."""
    called: list[RecordedCall]

    async def take(self, *events: ProviderEvent) -> None:
        for event in events:
            await self.processor.take(event)

    async def parts(self) -> list[str]:
        """Each stored part in short, in the order of a page."""
        page = await self.store.messages(MessageQuery(S1))
        found = []
        for record in page.messages[-1].parts:
            value = record.value()
            kind = value.__struct_config__.tag
            found.append(f"{value.call_id} {value.state.__struct_config__.tag}" if kind == "tool" else kind)
        return found


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """A claimed session with an answer that was opened."""
    clock = SystemClock()
    store = await SqliteStore.open(tmp_path / "s.db", clock=clock, host=FakeHost())
    await store.commit(Batch((session(), user(1), assistant(2, 1))))
    await store.register(FakeHost().owner("o1"))
    recorder = Recorder(store, granted(await store.claim(S1, "o1")), clock, Mint(clock))
    message = (await store.messages(MessageQuery(S1))).messages[-1].info.value()
    assert isinstance(message, AssistantMessage)
    commits: list[list[str]] = []
    called: list[RecordedCall] = []
    plain = store.commit

    async def noted(batch: Batch) -> Receipt:
        commits.append([change.kind for change in batch.changes])
        return await plain(batch)

    async def on_call(call: RecordedCall) -> None:
        called.append(call)

    monkeypatch.setattr(store, "commit", noted)
    feed = Feed(store, clock, Mint(clock))
    yield Stage(store, Processor(recorder, feed, message, on_call), commits, called)
    await feed.close()
    await store.close()


def start(id: str, *, hosted: bool = False) -> ToolInputStart:
    return ToolInputStart(id=id, name="act", hosted=hosted)


def called(id: str, *, hosted: bool = False) -> ToolCalled:
    return ToolCalled(id=id, name="act", input={"what": id}, hosted=hosted)


async def test_a_call_whose_arguments_come_at_once_is_one_commit(stage: Stage) -> None:
    """It is recorded as running before its tool is started, with the id that the tool gets."""
    await stage.take(start("a"), called("a"))

    assert stage.commits == [["part"]]
    assert await stage.parts() == ["a running"]
    (record,) = (await stage.store.messages(MessageQuery(S1))).messages[-1].parts
    assert [call.part.id for call in stage.called] == [record.id]


async def test_calls_are_recorded_in_the_order_in_which_they_began(stage: Stage) -> None:
    """Also if the arguments of the second are complete before those of the first."""
    await stage.take(start("a"), start("b"), called("b"))
    assert await stage.parts() == ["a pending", "b running"]

    await stage.take(start("c"), called("a"), called("c"))

    assert await stage.parts() == ["a running", "b running", "c running"]
    assert [len(kinds) for kinds in stage.commits] == [2, 1, 1]


async def test_a_text_behind_a_call_stays_behind_it(stage: Stage) -> None:
    """A call that is not recorded yet is recorded with whatever comes after it."""
    await stage.take(start("a"), TextStart(id="t"), TextDelta(id="t", text="x"), TextEnd(id="t"), called("a"))

    assert await stage.parts() == ["a running", "text"]


async def test_a_call_whose_arguments_take_their_time_is_shown(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is pending after a moment; when its arguments are complete, it is the same part."""
    monkeypatch.setattr(processor, "SHOW_MS", 1)
    async with anyio.create_task_group() as group:
        group.start_soon(stage.processor.keep_shown)
        await stage.take(start("a"))
        await until(lambda: stage.commits)
        await until(lambda: not stage.processor._lock.locked())
        assert await stage.parts() == ["a pending"]
        await stage.take(called("a"))
        group.cancel_scope.cancel()

    assert await stage.parts() == ["a running"]
    (record,) = (await stage.store.messages(MessageQuery(S1))).messages[-1].parts
    assert [call.part.id for call in stage.called] == [record.id]


async def test_a_call_without_arguments_is_recorded_at_the_end(stage: Stage) -> None:
    """The stream ended before they came: it is there to be settled, under an id of the store."""
    await stage.take(start("a"), start("a"))
    await stage.processor.end()

    assert await stage.parts() == ["a pending", "a-2 pending"]
    open_ = stage.processor.open_calls()
    assert [part.call_id for part in open_] == ["a", "a-2"]
    assert all(part.id.startswith("prt_") for part in open_)


async def test_a_hosted_result_without_a_call_is_one_part(stage: Stage) -> None:
    """Its state is the result's from the beginning."""
    await stage.take(ToolResulted(id="h", name="search", output={"hits": 1}))

    assert await stage.parts() == ["h completed"]
    assert stage.commits == [["part"]]
