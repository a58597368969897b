"""Fetches the catalogue that models.dev publishes, and keeps the last good copy in the cache directory.

What must stay true: a copy is replaced only by one that was read in full and understood; without a network
the old data stays; the fetch is bounded in time and size. The copy is in our own form (`snapshot.py`), and it
wins over the bundled catalogue only while it is the newer of the two.
"""

import contextlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from holdfast.errors import ContextError, HoldfastError, ProviderError
from holdfast.flags import flag
from holdfast.person import directories, small_file
from holdfast.provider.catalog import models_dev, snapshot
from holdfast.provider.catalog.snapshot import Snapshot, Source
from holdfast.schema import typed

URL = "https://models.dev"
PATH = "/api.json"
FETCH_MS = 10_000
BYTES_MAX = 64 * 1024 * 1024
OK, NOT_MODIFIED = 200, 304


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """Which version of which address the copy was made from."""

    url: str
    etag: str


def copy_file() -> Path:
    """The last good copy."""
    return directories.cache() / "models.jsonl"


def tag_file() -> Path:
    """What the copy was made from."""
    return directories.cache() / "models.etag.json"


def address() -> str:
    """Where the catalogue is fetched: the flag MODELS_URL names another host or file."""
    base = (flag("MODELS_URL") or URL).rstrip("/")
    return base if base.endswith(".json") else base + PATH


def snapshots() -> tuple[Snapshot, ...]:
    """The catalogues to use, the one that wins last. A copy that cannot be read is as good as none."""
    bundled = snapshot.bundled()
    with contextlib.suppress(HoldfastError):
        data = small_file.read(copy_file(), bytes_max=BYTES_MAX)
        if data is not None:
            copy = Snapshot(data, str(copy_file()))
            if copy.head.date >= bundled.head.date:
                return (bundled, copy)
    return (bundled,)


async def refresh() -> str:
    """Fetch, and answer in a line what came of it. What goes wrong is an error; the old data stays."""
    from holdfast.net.stream import Http

    url = address()
    http = Http()
    try:
        answer = await http.get(url, bytes_max=BYTES_MAX, timeout_ms=FETCH_MS, etag=_known_tag(url))
    except ProviderError as error:
        raise ContextError(f"the catalogue cannot be fetched: {error}; the old data stays") from error
    finally:
        await http.aclose()
    if answer.status == NOT_MODIFIED:
        return f"{url} has nothing new"
    if answer.status != OK:
        raise ContextError(f"{url} answers {answer.status}; the old data stays")
    try:
        providers = models_dev.read(answer.body)
    except HoldfastError as error:
        raise ContextError(f"{url}: {error}; the old data stays") from error
    today = datetime.now(UTC).date().isoformat()
    small_file.write(copy_file(), snapshot.encode(today, (Source(name=url),), providers))
    small_file.write(tag_file(), msgspec.json.encode(Tag(url=url, etag=answer.etag or "")))
    count = sum(len(models) for _, models in providers.values())
    return f"{count} models of {len(providers)} providers from {url}"


def _known_tag(url: str) -> str | None:
    """The tag to send: only for the same address, and only while the copy is there."""
    with contextlib.suppress(HoldfastError, msgspec.MsgspecError):
        data = small_file.read(tag_file())
        if data is not None and copy_file().is_file():
            tag = typed.decode(data, Tag)
            return (tag.etag or None) if tag.url == url else None
    return None
