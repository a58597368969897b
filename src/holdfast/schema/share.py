"""How a session is shared: where the page is, and the secret that lets its owner change or remove it."""

from holdfast.schema.wire import Record


class Share(Record, frozen=True, kw_only=True):
    """The `id` is the share's own, not the session's."""

    id: str
    secret: str
    url: str
