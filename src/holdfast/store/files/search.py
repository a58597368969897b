"""Full-text search over the tree: the SQLite store's own index, fed from the files."""

from holdfast.store.files.disk import Disk
from holdfast.store.files.index import Index
from holdfast.store.files.reader import TreeFeed
from holdfast.store.tables.search import Search


class TreeSearch(Search):
    """The search index beside `index.db`."""

    def __init__(self, index: Index, disk: Disk) -> None:
        super().__init__(index)
        self._feed = TreeFeed(self._db, disk)
