"""Runs programs of these tests as root and as an ordinary user, whoever runs the tests."""

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ORDINARY = 1000
WAIT_S = 60
BASE = str(getattr(sys, "_base_executable", sys.executable))
"""The interpreter below the virtual environment: a checkout in a temporary folder is not seen in a box."""


def uid_of(user: str) -> int:
    """The id to run as; skips, visibly, where that user cannot be had."""
    own = os.geteuid()
    if user == "root" and own != 0:
        pytest.skip("needs root, and these tests run as an ordinary user")
    return own if own != 0 or user == "root" else ORDINARY


@cache
def python_for(uid: int) -> str:
    """An interpreter of our version that this user can start: root's own may lie in a closed folder."""
    said = "import sys; print(*sys.version_info[:2])"
    wanted = f"{sys.version_info[0]} {sys.version_info[1]}\n"
    for path in (
        getattr(sys, "_base_executable", sys.executable),
        "/usr/bin/python3",
        "/usr/local/bin/python3",
    ):
        try:
            ran = subprocess.run(
                [path, "-c", said], capture_output=True, text=True, cwd="/", check=False, **switch(uid)
            )
        except OSError:
            continue
        if ran.stdout == wanted:
            return str(path)
    pytest.skip(f"needs a Python {wanted.strip()} that user {uid} can start")


@contextmanager
def folder_of(uid: int, above: str = "/var/tmp") -> Iterator[Path]:
    """A folder of that user's, not in /tmp, which a box covers."""
    made = Path(os.path.realpath(tempfile.mkdtemp(prefix="holdfast-box-test-", dir=above)))
    try:
        os.chown(made, uid, uid if os.geteuid() == 0 else -1)
        yield made
    finally:
        rmtree(made, ignore_errors=True)


def run_as(uid: int, arguments: list[str], *before: str) -> "subprocess.CompletedProcess[str]":
    """Run a program of this folder with our package; `before`: what is put before the interpreter's name."""
    paths = (ROOT / "src", ROOT, sysconfig.get_path("purelib"))
    ran: subprocess.CompletedProcess[str] = subprocess.run(
        [*before, python_for(uid), *arguments],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": "/nonexistent",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        cwd="/",
        **switch(uid),
    )
    return ran


def switch(uid: int) -> dict[str, Any]:
    """How `subprocess` becomes that user; nothing where it is the one we are."""
    return {} if uid == os.geteuid() else {"user": uid, "group": uid, "extra_groups": []}


def lesser(uid: int, *lacks: str) -> tuple[str, ...]:
    """What to put before a program so that it runs on a host that lacks these system calls."""
    return (python_for(uid), str(HERE / "lesser_host.py"), *lacks, "--")
