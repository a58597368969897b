"""What calls side by side know of the files that their session has read."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from holdfast.runtime.history.files_seen import FilesSeen
from holdfast.schema import stored
from holdfast.schema.ids import MessageID, PartID, SessionID
from holdfast.schema.part import ToolPart
from holdfast.schema.stored import Mark
from holdfast.schema.tool_state import Completed, ToolCompleted
from holdfast.store.record import Changes, Resync, StoredRecord


def read(path: str) -> StoredRecord:
    """The record of a call that has read a file."""
    facts = {"filepath": path, "sha256": f"digest of {path}"}
    times = Completed(start=0, end=1)
    part = ToolPart(
        id=PartID("prt_1"),
        session_id=SessionID("ses_1"),
        message_id=MessageID("msg_1"),
        call_id="c",
        tool="read",
        state=ToolCompleted(input={}, output="", title="", metadata=facts, time=times),
    )
    return StoredRecord("ses_1", "part", "prt_1", "msg_1", 1, 1, 1, Mark.NONE, stored.strip("part", part))


class SlowStore:
    """A store that lets others run before it answers. `resyncs`: how often its changes are not enough."""

    def __init__(self, resyncs: int = 0, faults: int = 0) -> None:
        self.resyncs = resyncs
        self.faults = faults
        self.selects = 0

    async def head(self) -> str:
        await anyio.lowlevel.checkpoint()
        return "1"

    async def select(self, kind: str, **_: Any) -> list[StoredRecord]:
        self.selects += 1
        for _turn in range(5):
            await anyio.lowlevel.checkpoint()
        if self.faults:
            self.faults -= 1
            raise OSError("the disk is away")
        return [read("/a"), read("/b")]

    async def changes(self, cursor: str, *_: Any, **__: Any) -> Changes | Resync:
        await anyio.lowlevel.checkpoint()
        if self.resyncs:
            self.resyncs -= 1
            return Resync("too old")
        return Changes((), cursor, True)


@pytest.mark.parametrize("resyncs", [0, 1, 2])
async def test_what_was_read_is_known_to_all_calls_side_by_side(resyncs: int) -> None:
    """Also to those that ask while the records are being read, for the first time or again."""
    store = SlowStore(resyncs)
    seen = FilesSeen(store, "ses_1")  # type: ignore[arg-type]
    known: dict[str, str | None] = {}

    async def ask(path: str) -> None:
        known[path] = await seen.digest(path)

    async with anyio.create_task_group() as group:
        for path in ("/a", "/b", "/c"):
            group.start_soon(ask, path)
    assert known == {"/a": "digest of /a", "/b": "digest of /b", "/c": None}
    assert store.selects == 1 + resyncs


async def test_what_was_read_is_known_after_a_fault_of_the_store() -> None:
    """Records that could not be read are read by the next call."""
    seen = FilesSeen(SlowStore(faults=1), "ses_1")  # type: ignore[arg-type]
    with pytest.raises(OSError, match="the disk is away"):
        await seen.digest("/a")
    assert await seen.digest("/a") == "digest of /a"
