"""What the boxes of a process share is made once, and bounded."""

from pathlib import Path

import anyio
import pytest

from holdfast.location.box import boxes, host_level
from holdfast.location.box.boxes import Boxes
from holdfast.location.box.host_level import HostLevel


class FakeNetwork:
    """Counts how many are open."""

    open: int = 0

    def __init__(self) -> None:
        FakeNetwork.open += 1

    def close(self) -> None:
        FakeNetwork.open -= 1


async def test_one_network_a_session_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two commands at once make one; the one used least recently goes first; closing lets all go."""
    monkeypatch.setattr(boxes, "SessionNetwork", FakeNetwork)
    monkeypatch.setattr(FakeNetwork, "open", 0)
    shared = Boxes()
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(shared.network, "ses_1")
    assert FakeNetwork.open == 1
    first = await shared.network("ses_1")
    for number in range(2, boxes.NETWORKS_MAX + 1):
        await shared.network(f"ses_{number}")
    await shared.network("ses_1")
    await shared.network("one more")

    assert (FakeNetwork.open, await shared.network("ses_1") is first) == (boxes.NETWORKS_MAX, True)
    await shared.close()
    assert FakeNetwork.open == 0


async def test_the_level_is_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process does not read the file for every command."""
    asked: list[Path] = []

    def found(state: Path) -> HostLevel:
        asked.append(state)
        return HostLevel("full")

    monkeypatch.setattr(host_level, "host_level", found)
    shared = Boxes()

    assert [await shared.level(tmp_path) for _ in range(3)] == [HostLevel("full")] * 3
    assert asked == [tmp_path]
