"""The library over each of the three engines."""

from pathlib import Path

import pytest

from tests.store.postgres.server import schema_url

ENGINES = ["sqlite", "file", pytest.param("postgresql", marks=pytest.mark.ci("the work of a server"))]


def store_url(engine: str, place: Path) -> str:
    """A store of its own in a folder, or a schema of its own."""
    return schema_url(place) if engine == "postgresql" else f"{engine}://{place}/store"
