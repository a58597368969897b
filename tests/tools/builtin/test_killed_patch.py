"""A patch over several files, and a kill -9 at every step of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.tools.builtin.changing import World, text_of

at, top = int(sys.argv[1]), Path(sys.argv[2])
world = World(top)
for name in ("a.txt", "b.txt", "gone.txt"):
    world.file(name, "old\\n" * 500)
world.file("from.txt", "moved\\n" * 500)
count = 0

def dies(plain):
    def call(*arguments, **named):
        global count
        count += 1
        if count == at:
            if plain is write:
                plain(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*arguments, **named)
    return call

write = os.write
patch = text_of(
    "*** Update File: a.txt", "-old", "+new",
    "*** Update File: from.txt", "*** Move to: to.txt", "-moved", "+new",
    "*** Delete File: gone.txt",
    "*** Add File: made.txt", "+new",
    "*** Update File: b.txt", "-old", "+new",
)
for verb in ("write", "fsync", "rename", "unlink"):
    setattr(os, verb, dies(getattr(os, verb)))
asyncio.run(world.run("apply_patch", patchText=patch))
"""

OLD, NEW = b"old\n" * 500, b"new\n" + b"old\n" * 499
ALLOWED: dict[str, set[bytes | None]] = {
    "a.txt": {OLD, NEW},
    "b.txt": {OLD, NEW},
    "gone.txt": {OLD, None},
    "made.txt": {None, b"new\n"},
    "from.txt": {b"moved\n" * 500, None},
    "to.txt": {None, b"new\n" + b"moved\n" * 499},
}


@pytest.mark.ci
def test_a_kill_at_any_write_leaves_each_file_old_or_new(tmp_path: Path) -> None:
    """Never a mix within one; a file that moves is there under one of its names at least."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    ended = 0
    found: dict[str, bytes | None] = {}
    for at in range(1, 100):
        top = tmp_path / str(at)
        top.mkdir()
        done = subprocess.run([sys.executable, "-c", KILLED, str(at), str(top)], env=env, check=False)
        project = top / "project"
        found = {
            name: (project / name).read_bytes() if (project / name).exists() else None for name in ALLOWED
        }
        assert all(found[name] in allowed for name, allowed in ALLOWED.items()), (at, found)
        assert found["from.txt"] is not None or found["to.txt"] is not None
        if done.returncode == 0:
            ended = at
            break
        assert done.returncode == -signal.SIGKILL
    assert ended > 12
    assert found == {
        "a.txt": NEW,
        "b.txt": NEW,
        "gone.txt": None,
        "made.txt": b"new\n",
        "from.txt": None,
        "to.txt": b"new\n" + b"moved\n" * 499,
    }
