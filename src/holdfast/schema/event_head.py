"""What every event begins with."""

from holdfast.schema.ids import EventID
from holdfast.schema.wire import Wire


class EventHead(Wire, frozen=True, kw_only=True):
    """What every event begins with."""

    id: EventID | None = None
