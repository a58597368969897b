"""Runs a command in a box, for tests: as the owner's process does, without the runtime around it."""

import os
import subprocess
from pathlib import Path

import msgspec

from holdfast.location.box import start
from holdfast.location.box.policy import BoxPolicy
from holdfast.location.box.start import Report

WAIT_S = 60


class Ran(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    error: str = ""
    report: Report = Report()


def run(
    policy: BoxPolicy,
    command: str | list[str],
    *,
    cwd: Path,
    session: tuple[int, int] | None = None,
    python: tuple[str, ...] = (),
    namespaces: bool = True,
    env: dict[str, str] | None = None,
) -> Ran:
    """Run a shell command, or a program, to its end."""
    program = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    with start.prepared(policy, namespaces=namespaces, session=session, python=python) as box:
        ran = subprocess.run(
            box.command(program),
            cwd=cwd,
            env={"PATH": os.environ["PATH"], "HOME": str(cwd), **(env or {}), **box.environment()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WAIT_S,
            check=False,
            pass_fds=box.descriptors,
            start_new_session=True,
        )
        box.began()
        report = box.report()
    out, error = (text.decode(errors="surrogateescape") for text in (ran.stdout, ran.stderr))
    return Ran(ran.returncode, out, error, report)
