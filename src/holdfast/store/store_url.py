"""Where the store is: a URL, from the caller, else from HOLDFAST_STORE, else SQLite in the user's data.

What must stay true: the URL of a place names that place again, whatever signs its path has.
"""

import os
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit

import msgspec

from holdfast.errors import InvalidInput
from holdfast.person import directories

Engine = Literal["sqlite", "files", "postgres"]

_ENGINES: dict[str, Engine] = {
    "sqlite": "sqlite",
    "file": "files",
    "postgresql": "postgres",
    "postgres": "postgres",
}


class StoreUrl(msgspec.Struct, frozen=True):
    """An engine and where its data lies: a path, or for PostgreSQL the URL itself."""

    engine: Engine
    path: Path | None
    url: str


def find_place(url: str | None = None) -> StoreUrl:
    """The place that a URL names. Nothing is opened or made."""
    url = url or os.environ.get("HOLDFAST_STORE")
    if not url:
        path = directories.data() / "holdfast.db"
        return StoreUrl("sqlite", path, f"sqlite://{quote(os.fsencode(path))}")
    parts = _split(url)
    engine = _ENGINES.get(parts.scheme)
    if engine is None:
        raise InvalidInput(
            f"the store {shown(url)!r} is not one of sqlite:///PATH, file:///PATH and postgresql://…"
        )
    if engine == "postgres":
        return StoreUrl(engine, None, url)
    if "?" in url or "#" in url:
        raise InvalidInput(f"in the store {shown(url)!r} write %3F for ? and %23 for #")
    name = _path(parts.path)
    if parts.netloc or not name.startswith("/") or "\0" in name or name.strip("/") == "":
        raise InvalidInput(f"the store {shown(url)!r} must name an absolute path: {parts.scheme}:///PATH")
    return StoreUrl(engine, Path(name), url)


def _split(url: str) -> SplitResult:
    # The parser drops these signs in silence, and another store would be meant.
    if url != url.strip() or any(sign < " " for sign in url):
        raise InvalidInput(
            f"the store {shown(url)!r} has blanks or control signs; write them as %20 and so on"
        )
    try:
        return urlsplit(url)
    except ValueError as error:
        raise InvalidInput(
            f"the store {shown(url)!r} is not a URL: sqlite:///PATH, file:///PATH or postgresql://…"
        ) from error


def _path(quoted: str) -> str:
    try:
        return os.fsdecode(unquote_to_bytes(os.fsencode(quoted)))
    except UnicodeEncodeError:
        return ""  # This system has no such name.


def shown(url: str) -> str:
    """A URL as a message may show it: without a password."""
    try:
        password = urlsplit(url).password
    except ValueError:
        return f"{url.partition(':')[0][:20]}:…"  # What cannot be split may hide one anywhere.
    if password is None:
        return url[:200]
    return url.replace(f":{password}@", ":***@", 1)[:200]
