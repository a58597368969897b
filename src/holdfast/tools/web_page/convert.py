"""A page of HTML as Markdown or as plain text."""

import subprocess
import sys
from typing import Final, Literal

import anyio
import anyio.to_thread

from holdfast.tools.web_page import convert_process
from holdfast.tools.web_page.strip import strip

Form = Literal["markdown", "text"]

_COMMAND: Final = (sys.executable, "-P", "-m", "holdfast.tools.web_page.convert_process")
_WAIT_S: Final = convert_process.SECONDS_MAX + 5.0


async def convert(page: str, *, form: Form, base: str) -> str:
    """The page's text, its links seen from `base`. What the converter gives up is stripped of its tags.

    The process has no environment: it reads what a stranger wrote, and needs none.
    """
    try:
        with anyio.fail_after(_WAIT_S):
            done = await anyio.run_process(
                [*_COMMAND, form, base],
                input=page.encode("utf-8", "replace"),
                stderr=subprocess.DEVNULL,
                check=False,
                env={},
            )
    except (TimeoutError, OSError):
        done = None
    if done is None or done.returncode:
        return await anyio.to_thread.run_sync(strip, page)
    return done.stdout.decode("utf-8", "replace").strip()
