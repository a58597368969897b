"""A program is started whole, also for a caller who is cancelled meanwhile."""

from pathlib import Path

import anyio

from holdfast.runtime.engine import process_group


async def test_who_is_cancelled_while_a_program_starts_has_it_to_end(tmp_path: Path) -> None:
    """Half started, the pipe of its output would stay open, and nobody would know of it."""
    process = None
    with anyio.CancelScope() as scope:
        scope.cancel()
        process = await process_group.start(["sleep", "600"], cwd=tmp_path, env={})
    assert process is not None
    process.kill()
    assert await process.wait() == -9
