"""Takes over a tree that OpenCode made, in place: its migrations first, then our numbers into every file.

What the tree has and we do not know (folders, fields) stays as it is.
"""

import os
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.store.files.disk import Disk
from holdfast.store.files.repair import migrate

MIGRATED = len(migrate.MIGRATIONS)
"""What the seeds' marker says in a tree of ours."""


def has_old_layout(root: Path) -> bool:
    """Whether a tree of the first layout lies beside the place."""
    return bool(migrate.old_projects(root))


def prepare(root: Path, disk: Disk) -> None:
    """Bring the tree to the layout that we number."""
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            if (Path(folder) / name).is_symlink():
                raise StoreError(
                    f"{Path(folder) / name} is a link; a tree with links is not taken over, since writing "
                    "could lead out of it"
                )
    migrate.migrate(root, disk)
    shares = {}
    for path in disk.walk("session_share"):  # Its later name; ours is the seeds'.
        name = f"share/{path.partition('/')[2]}"
        if not disk.exists(name):
            shares[name] = disk.read(path)
    disk.replace_all(shares)
