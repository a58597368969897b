"""What boxes leave on disk goes when no start has used it for days."""

import os
import time
from pathlib import Path

from holdfast.location.box import leftovers


def test_unused_folders_go(tmp_path: Path) -> None:
    """By age; of the temporary ones only sessions'; a link is left alone, and so is what it names."""
    caches, temporary = tmp_path / "caches", tmp_path / "temporary"
    old, new = caches / "old", caches / "new"
    for folder in (
        old / "work" / "closed",
        new,
        temporary / "ses_old",
        temporary / "ses_new",
        temporary / "other",
    ):
        folder.mkdir(parents=True)
    (caches / "link").symlink_to(new)
    (old / "work" / "closed" / "file").touch()
    (old / "work" / "closed").chmod(0)
    long_ago = time.time() - 30 * 86_400
    for folder in (old, temporary / "ses_old", temporary / "other"):
        os.utime(folder, (long_ago, long_ago))
    os.utime(caches / "link", (long_ago, long_ago), follow_symlinks=False)

    leftovers.sweep(caches, temporary)
    leftovers.sweep(tmp_path / "absent", None)

    assert sorted(path.name for path in caches.iterdir()) == ["link", "new"]
    assert sorted(path.name for path in temporary.iterdir()) == ["other", "ses_new"]


def test_use_is_noted(tmp_path: Path) -> None:
    """A folder that is not there is no error."""
    os.utime(tmp_path, (1, 1))

    leftovers.note_use(tmp_path)
    leftovers.note_use(tmp_path / "absent")

    assert tmp_path.stat().st_mtime > 1
