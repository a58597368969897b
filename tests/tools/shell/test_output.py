"""The output of a command: every piece is in its file, once and in order, whoever writes or stops."""

import time
from pathlib import Path

import anyio
import pytest

from holdfast.clock import SystemClock
from holdfast.tools.managed_output import ManagedOutput, OutputFile
from holdfast.tools.shell.output import Output


@pytest.fixture
def managed(tmp_path: Path) -> ManagedOutput:
    """A folder of kept outputs."""
    return ManagedOutput(tmp_path / "outputs", SystemClock())


def kept(output: Output) -> bytes:
    """What its file holds."""
    assert output.path is not None
    return Path(output.path).read_bytes()


async def test_who_is_cancelled_before_a_write_begins_loses_nothing(managed: ManagedOutput) -> None:
    """The next write has it. A process that ends just then had its last lines dropped."""
    output = Output(managed)
    await output.write()
    await output.take(b"one\n")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await output.write()
    assert kept(output) == b""
    await output.take(b"two\n")
    await output.finish()
    assert (kept(output), output.lossy) == (b"one\ntwo\n", False)


async def test_writers_at_once_keep_the_order_and_share_a_file(
    managed: ManagedOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk lets the second writer begin before the first has ended; the end waits for both."""
    plain = OutputFile.write

    def slow(self: OutputFile, data: bytes) -> bool:
        time.sleep(0.05 if data.startswith(b"first") else 0)
        return plain(self, data)

    monkeypatch.setattr(OutputFile, "write", slow)
    output = Output(managed)
    async with anyio.create_task_group() as group:
        for piece in (b"first\n", b"second\n", b"third\n"):
            await output.take(piece)
            group.start_soon(output.write)
            await anyio.sleep(0.01)
        await output.finish()
    assert (kept(output), output.lossy) == (b"first\nsecond\nthird\n", False)
    assert len(list(managed.folder.iterdir())) == 1
