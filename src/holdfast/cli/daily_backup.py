"""Makes the daily backup of a store, as a process of its own: `python -m holdfast.cli.daily_backup PATH`."""

import sys
from pathlib import Path

from holdfast.cli.config.own import own_settings
from holdfast.store.sqlite.backups import Backups
from holdfast.store.sqlite.database import Database


def main(path: Path) -> None:
    """Make it, unless the user has switched backups off."""
    if is_wanted():
        Backups(Database(path)).make()


def is_wanted() -> bool:
    """What the user's own settings say; settings that cannot be read switch nothing off."""
    settings = own_settings()
    return settings is None or settings.backup is not False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
