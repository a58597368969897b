"""The network that the commands of one session share: a namespace with loopback only.

A server that one command started in the background is reached by the next. No process keeps it: the two
descriptors do, and the kernel takes it away when they are closed and its last command has ended.
"""

import os
import subprocess
from types import TracebackType
from typing import Final, Self

from holdfast.errors import ContextError
from holdfast.location.box import interpreter

WAIT_S: Final = 10.0


class SessionNetwork:
    """One namespace of users and one of the network, open in this process."""

    def __init__(self, python: tuple[str, ...] = ()) -> None:
        """Make them. It blocks for the time of a launcher's start."""
        process = subprocess.Popen(
            [*interpreter.command(python), "network"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                _, said = process.communicate(timeout=WAIT_S)
                raise ContextError(f"no network for commands: {said.decode(errors='replace').strip()[:200]}")
            self.descriptors = _opened(process.pid)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ContextError(f"no network for commands: {error}") from error
        finally:
            process.kill()
            process.communicate()

    def close(self) -> None:
        """Let it go; commands that are in it keep it until they end."""
        for number in self.descriptors:
            os.close(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _opened(pid: int) -> tuple[int, int]:
    users = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return users, os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        os.close(users)
        raise
