"""Where the store is: a URL, from the caller, else from HOLDFAST_STORE, else SQLite in the user's data."""

import os
import sys
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec

from holdfast.errors import InvalidInput

Engine = Literal["sqlite", "files", "postgres"]

_ENGINES: dict[str, Engine] = {
    "sqlite": "sqlite",
    "file": "files",
    "postgresql": "postgres",
    "postgres": "postgres",
}


class Place(msgspec.Struct, frozen=True):
    """An engine and where its data lies: a path, or for PostgreSQL the URL itself."""

    engine: Engine
    path: Path | None
    url: str


def find_place(url: str | None = None) -> Place:
    """The place that a URL names. Nothing is opened or made."""
    url = url or os.environ.get("HOLDFAST_STORE")
    if not url:
        path = data_directory() / "holdfast.db"
        return Place("sqlite", path, f"sqlite://{path}")
    parts = urlsplit(url)
    engine = _ENGINES.get(parts.scheme)
    if engine is None:
        raise InvalidInput(
            f"the store {shown(url)!r} is not one of sqlite:///PATH, file:///PATH and postgresql://…"
        )
    if engine == "postgres":
        return Place(engine, None, url)
    name = unquote(parts.path)
    if parts.netloc or not name.startswith("/") or "\0" in name or name.strip("/") == "":
        raise InvalidInput(f"the store {shown(url)!r} must name an absolute path: {parts.scheme}:///PATH")
    return Place(engine, Path(name), url)


def data_directory() -> Path:
    """The folder for what Holdfast keeps of a person."""
    if sys.platform != "linux":
        import platformdirs

        return platformdirs.user_data_path("holdfast", appauthor=False)
    # Spelled out: the library that knows every system costs 20 ms.
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "share") / "holdfast"


def shown(url: str) -> str:
    """A URL as a message may show it: without a password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url[:200]
    return url.replace(f":{parts.password}@", ":***@", 1)[:200]
