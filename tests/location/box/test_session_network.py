"""The commands of a session share one network: loopback, and nothing else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import ContextError
from holdfast.location.box import start
from holdfast.location.box.policy import BoxPolicy
from holdfast.location.box.session_network import SessionNetwork
from tests.location.box.boxed import run
from tests.location.box.users import folder_of, lesser

pytestmark = pytest.mark.needs("box")

BASE = getattr(sys, "_base_executable", sys.executable)
SERVER = """
import socket
with socket.create_server(("127.0.0.1", 8765)) as server:
    print("up", flush=True)
    while True:
        server.accept()[0].sendall(b"hello")
"""
CLIENT = """
import socket
print(socket.create_connection(("127.0.0.1", 8765), 5).recv(9).decode())
"""


@pytest.fixture
def work() -> Iterator[Path]:
    with folder_of(os.geteuid()) as made:
        yield made


@pytest.mark.ci
def test_a_server_in_the_background_is_reached_by_the_next_command(work: Path) -> None:
    """By another session's it is not, nor from outside; and it ends with its group."""
    policy = BoxPolicy(mode="workspace", write=(str(work),))
    with (
        SessionNetwork() as network,
        SessionNetwork() as other,
        start.prepared(policy, session=network.descriptors) as box,
    ):
        server = subprocess.Popen(
            box.command([BASE, "-c", SERVER]),
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            cwd=work,
            pass_fds=box.descriptors,
            start_new_session=True,
        )
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"up\n"
            mine = run(policy, [BASE, "-c", CLIENT], cwd=work, session=network.descriptors)
            theirs = run(policy, [BASE, "-c", CLIENT], cwd=work, session=other.descriptors)
            outside = subprocess.run([BASE, "-c", CLIENT], capture_output=True, check=False)
        finally:
            os.killpg(server.pid, 9)
            server.communicate()
        after = run(policy, [BASE, "-c", CLIENT], cwd=work, session=network.descriptors)

    assert (mine.code, mine.out, mine.report.unreachable) == (0, "hello\n", 0)
    assert [theirs.code, outside.returncode, after.code] == [1, 1, 1]
    assert "ConnectionRefusedError" in theirs.error


def test_a_command_counts_only_its_own_time(work: Path) -> None:
    """What another command of the session wanted of the network earlier is not reported again."""
    policy = BoxPolicy(mode="workspace", write=(str(work),))
    away = "import socket; socket.create_connection(('192.0.2.1', 9), 1)"
    with SessionNetwork() as network:
        first = run(policy, [BASE, "-c", away], cwd=work, session=network.descriptors)
        second = run(policy, ["true"], cwd=work, session=network.descriptors)

    assert (first.report.unreachable > 0, second.report.unreachable) == (True, 0)


def test_a_host_without_namespaces_says_so() -> None:
    """In the words of the kernel."""
    with pytest.raises(ContextError, match="no network for commands: box: unshare: Operation not permitted"):
        SessionNetwork((*lesser(os.geteuid(), "unshare=EPERM"), BASE))


def test_no_process_is_left(work: Path) -> None:
    """The descriptors alone keep the namespaces."""
    with SessionNetwork():
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()

    assert children == []
