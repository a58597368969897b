"""Every test of this folder has the server."""

from tests.store.postgres.server import postgres_url

__all__ = ["postgres_url"]
