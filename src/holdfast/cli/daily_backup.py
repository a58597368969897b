"""Makes the daily backup of a store, as a process of its own: `python -m holdfast.cli.daily_backup PATH`."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from holdfast.cli.config.own import own_log_level, own_settings
from holdfast.errors import InvalidInput
from holdfast.log import event, setup
from holdfast.store.sqlite.backups import Backups
from holdfast.store.sqlite.database import Database


def main(path: Path) -> None:
    """Make it, unless the user has switched backups off."""
    if not is_wanted():
        return
    backups = Backups(Database(path))
    known = backups.listed()
    with suppress(InvalidInput):  # A level that is none is no reason to make no backup.
        setup.start_file(own_log_level)
    try:
        backups.make()
        if (trouble := backups.trouble()) is not None:
            event.warn("store", "backup.failed", reason=trouble)
        for made in (each for each in backups.listed() if each not in known):
            event.info("store", "backup.made", name=made.name, bytes=made.stat().st_size)
    finally:
        setup.stop_file()


def is_wanted() -> bool:
    """What the user's own settings say; settings that cannot be read switch nothing off."""
    settings = own_settings()
    return settings is None or settings.backup is not False


if __name__ == "__main__":
    os.nice(19)  # Whoever works comes first.
    main(Path(sys.argv[1]))
