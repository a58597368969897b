"""The last good copy of a remote file, so that losing the network does not change what the model is told."""

from holdfast.schema.times import Created
from holdfast.schema.wire import Record


class CacheEntry(Record, frozen=True, kw_only=True):
    """`key` is the URL, or another name of what was fetched."""

    id: str
    key: str
    etag: str | None = None
    text: str
    time: Created
