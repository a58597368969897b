"""Makes the daily backup of a store, as a process of its own: `python -m holdfast.cli.daily_backup PATH`."""

import sys
from pathlib import Path

from holdfast.config.load import load_own
from holdfast.config.places import Places
from holdfast.errors import HoldfastError
from holdfast.person import directories
from holdfast.store.sqlite.backups import Backups
from holdfast.store.sqlite.database import Database


def main(path: Path) -> None:
    """Make it, unless the user has switched backups off."""
    if is_wanted():
        Backups(Database(path)).make()


def is_wanted() -> bool:
    """What the user's own settings say; settings that cannot be read switch nothing off."""
    home = directories.home()
    where = Places(
        directory=home,
        worktree=home,
        home=home,
        opencode_config=directories.opencode_config(),
        holdfast_config=directories.config(),
    )
    try:
        return load_own(where).backup is not False
    except HoldfastError:
        return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
