"""Terminals of a process that is killed, or paused for long: the guard ends them."""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import anyio
import pytest

from tests.location.terminal.desk import PATIENCE_S, runs
from tests.until import until

OWNER = """
import sys
from pathlib import Path
import anyio
from holdfast.location.terminal import terminals
from tests.location.terminal.desk import desk
terminals.PAUSED_MS = int(sys.argv[2])
terminals.RENEW_S = 0.1
async def main():
    async with desk(Path(sys.argv[1])) as here:
        await here.sh(sys.argv[3])
        await anyio.sleep_forever()
anyio.run(main)
"""
SCRIPT = (
    "trap '' HUP; for how in setsid nice; do $how sleep 1000 & echo $! >> pids; done; echo $$ >> pids; wait"
)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("sent", "paused_ms"), [(signal.SIGKILL, 60_000), (signal.SIGSTOP, 6_000)], ids=["killed", "paused"]
)
async def test_nothing_of_a_terminal_outlives_its_process(
    tmp_path: Path, sent: signal.Signals, paused_ms: int
) -> None:
    """Not the shell, which ignores the hang-up, nor what it has started; until then all of them live."""
    owner = await anyio.open_process(
        [sys.executable, "-c", OWNER, str(tmp_path), str(paused_ms), SCRIPT],
        stdin=None,
        stdout=None,
        stderr=None,
    )
    pids: list[int] = []

    def started() -> bool:
        if (tmp_path / "pids").exists():
            pids[:] = map(int, (tmp_path / "pids").read_text().split())
        return len(pids) == 3

    try:
        await until(started)
        await asyncio.sleep(1.2 * paused_ms / 1_000 if sent == signal.SIGSTOP else 0)
        assert all(map(runs, pids)), "as long as their owner shows that it lives"
        owner.send_signal(sent)
        await until(lambda: not any(map(runs, pids)))
    finally:
        with contextlib.suppress(ProcessLookupError):
            owner.kill()
        with anyio.fail_after(PATIENCE_S):
            await owner.wait()
