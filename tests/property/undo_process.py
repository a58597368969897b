"""A process that does one thing in the scene of undo, and is killed at one of its writes: `-m
tests.property.undo_process`. It reads an order from standard input; if it lives, it writes the new state.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from holdfast.store.host import ThisHost
from holdfast.store.owner import Owner
from tests.property.undo_scene import Scene, State
from tests.stories.crashing import Machine

USED = 1_000
"""More lines than one action writes."""


class Order(msgspec.Struct):
    """What is to be done, and at which write the process dies."""

    place: str
    state: State
    kill: tuple[int, bool]
    action: list[Any]


class OneOfMany(Machine):
    """A host on which processes really die."""

    def is_gone(self, owner: Owner) -> bool:
        return super().is_gone(owner) or ThisHost.is_gone(self, owner)


class KilledScene(Scene):
    """What is to be killed is done by another process, which is killed by the system."""

    def __init__(self, place: Path, *, state: State | None = None) -> None:
        super().__init__(place, real=True, state=state)
        self.machine = OneOfMany()
        self.kills = 0

    async def act(self, what: str, *given: Any) -> None:
        if self.kill is None:
            await super().act(what, *given)
            return
        files, beside = self.files(), self.beside()
        order = Order(str(self.place), self.state, self.kill, [what, *given])
        self.kill = None
        await self.close()
        done = await anyio.run_process(
            [sys.executable, "-m", "tests.property.undo_process"],
            input=msgspec.json.encode(order),
            check=False,
        )
        await self.open()
        if done.returncode == 0:
            self.state = msgspec.json.decode(done.stdout, type=State)
            return
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        self.kills += 1
        used = range(self.state.count + 1, self.state.count + USED)
        self.state.meanwhile |= {f"{who}-{number}" for who in ("user", "two") for number in used}
        self.state.count += USED
        await self.died(files, beside, what, *given)


async def main() -> None:
    """Do it."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    scene = KilledScene(Path(order.place), state=order.state)
    with pytest.MonkeyPatch.context() as patch:
        scene.count_writes(patch)
        await scene.open()
        scene.mortal.kill = lambda: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
        scene.mortal.kill_at(order.kill[0], after=order.kill[1])
        what, *given = order.action
        await scene.do(what, *given)
        scene.mortal.kill_at(1 << 30, after=False)
        await scene.close()
    sys.stdout.buffer.write(msgspec.json.encode(scene.state))


if __name__ == "__main__":
    anyio.run(main)
