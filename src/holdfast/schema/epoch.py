"""The Context Epoch: the span in which one baseline stays what the model was told first. Each one is kept."""

from holdfast.schema.ids import SessionID
from holdfast.schema.times import Created
from holdfast.schema.wire import JsonMap, Record


class ContextEpoch(Record, frozen=True, kw_only=True):
    """`baseline` is the exact text; `snapshot` what the sources said, by key; `cause` why the epoch began.

    `pins` holds the instruction texts and tool definitions, per agent and model family, that must not move
    while it lasts.
    """

    id: str
    session_id: SessionID
    baseline: str
    snapshot: JsonMap
    cause: str
    pins: JsonMap
    time: Created
