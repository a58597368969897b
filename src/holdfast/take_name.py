"""Gives a finished file its name, and never takes it from another that lies under it by then."""

import errno
import os
from pathlib import Path

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What a filesystem says that has no second names for a file."""


def take_name(draft: Path, target: Path) -> None:
    """Raises `FileExistsError` where the name is taken. The draft's own name may stay, or be gone."""
    try:
        os.link(draft, target)  # Unlike a rename, this fails when another process made the file meanwhile.
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # The name is taken first, so that a rename can replace nothing but what was made here.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        draft.rename(target)
