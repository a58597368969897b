"""Starts the program of a terminal: in a session of its own, whose terminal it is."""

import contextlib
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

from holdfast import processes
from holdfast.errors import ContextError, InvalidInput
from holdfast.text import quoted

START_S: Final = 20.0
_ATTACH: Final = Path(__file__).parent / "attach.py"
_SHOWN: Final = 80
_ERRNO_BYTES_MAX: Final = 16


async def start(
    command: Sequence[str], *, cwd: str, env: Mapping[str, str], mark: str, terminal: int
) -> Process:
    """Start the program, and return when it has begun. `terminal`: the program's side of the device.

    Do not cancel this: the process would be left without an owner.
    """
    report, write = os.pipe()
    try:
        try:
            process = await anyio.open_process(
                [*_attaching(write, env), *command],
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
                cwd=cwd,
                env={**env, processes.MARK: mark},
                start_new_session=True,
                pass_fds=(write,),
            )
        except (OSError, ValueError) as error:  # ValueError: NUL, or what is no UTF-8
            raise _failed(command[0], error.errno if isinstance(error, OSError) else None, error) from error
        finally:
            os.close(write)
        failure = await _reported(report)
    finally:
        os.close(report)
    if failure is None:
        return process
    with contextlib.suppress(ProcessLookupError):  # It has gone by itself.
        process.kill()
    await process.wait()
    raise _failed(command[0], failure or None, failure)


def _attaching(report: int, env: Mapping[str, str]) -> list[str]:
    # Inside a virtual environment another name for the interpreter below it, which starts sooner.
    python: str = sys._base_executable or sys.executable  # type: ignore[attr-defined] # noqa: SLF001
    ctype = f"={env['LC_CTYPE']}" if "LC_CTYPE" in env else ""
    return [python, "-I", "-S", "-X", "utf8", str(_ATTACH), str(report), ctype]


async def _reported(report: int) -> int | None:
    """None when the program has begun, else why not: an errno, or 0 where it said nothing for too long."""
    with anyio.move_on_after(START_S):
        await anyio.wait_readable(report)
        said = os.read(report, _ERRNO_BYTES_MAX)
        return int(said) if said else None
    return 0


def _failed(command: str, number: int | None, why: object) -> InvalidInput | ContextError:
    named = quoted(command, _SHOWN)
    if number in (errno.ENOENT, errno.ENOTDIR):
        return InvalidInput(f"there is no program {named}; give its path, or the name of one on the PATH")
    if number is not None:
        return InvalidInput(f"{named} cannot be run: {os.strerror(number)}")
    if isinstance(why, ValueError):
        return InvalidInput(f"{named} cannot be run: its arguments are no text that the system takes")
    return ContextError(f"{named} did not begin within {START_S:.0f} s")
