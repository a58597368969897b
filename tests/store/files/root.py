"""What tests about root share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.store.files.store import FilesStore
from tests.store.files.lifecycle import Life


@asynccontextmanager
async def opened(life: Life) -> AsyncIterator[FilesStore]:
    store = await life.open()
    try:
        yield store
    finally:
        await store.close()
