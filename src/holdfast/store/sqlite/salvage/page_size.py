"""Which page size a file has, where one byte of its header may say another. Pure.

The log knows it, under a checksum. Without one, every size that may be meant is tried, and that one is taken
under which the most tables and indexes begin with a page of their kind.
"""

from holdfast.store.sqlite.salvage.cells import INTERIOR_INDEX, INTERIOR_TABLE, LEAF_INDEX, LEAF_TABLE, node
from holdfast.store.sqlite.salvage.frames import Bytes
from holdfast.store.sqlite.salvage.harvest import TABLES, schema_roots
from holdfast.store.sqlite.salvage.pages import PAGE_SIZE, Pages


def sized(data: Bytes, log: bytes, roots: dict[str, int]) -> Pages:
    """The pages of a file. `roots`: where our own tables and indexes begin, if the file does not say."""
    declared = Pages(data, log)
    if declared.has_log or declared.size == PAGE_SIZE:
        return declared
    return max((declared, Pages(data, log, PAGE_SIZE)), key=lambda pages: _score(pages, roots))


def _score(pages: Pages, roots: dict[str, int]) -> int:
    said = schema_roots(pages)
    begun = {name: node(pages, said.get(name, root)) for name, root in roots.items()}
    kinds = {
        name: (INTERIOR_TABLE, LEAF_TABLE) if name in TABLES else (INTERIOR_INDEX, LEAF_INDEX)
        for name in roots
    }
    return sum(here is not None and here.type in kinds[name] for name, here in begun.items())
