"""A private folder for temporary files of this user's agents, below the system's, which every user has."""

import contextlib
import os
import stat
from pathlib import Path

from holdfast.errors import ContextError

_SYSTEM = "/tmp"  # noqa: S108 - nothing of ours is written to it but the private folder


def folder() -> Path:
    """The folder, made where it is missing. One that is a link, or another user's, is refused by name."""
    given = os.environ.get("TMPDIR", "")
    above = os.path.realpath(given if given.startswith("/") else _SYSTEM)
    path = Path(above) / f"holdfast-{os.geteuid()}"
    try:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise ContextError(f"{path} is no folder of ours; move it away")
        if found.st_uid != os.geteuid():
            raise ContextError(f"{path} belongs to another user; agents have no temporary folder")
        if stat.S_IMODE(found.st_mode) != 0o700:
            path.chmod(0o700)  # The umask took a bit away, or the user gave some.
    except OSError as error:
        raise ContextError(f"{path} cannot be made: {error.strerror}") from error
    return path
