"""An epoch for tests of what is computed from one."""

from holdfast.schema.epoch import ContextEpoch, EpochTime
from holdfast.schema.ids import SessionID

EPOCH = ContextEpoch(
    id="e",
    session_id=SessionID("ses_1"),
    baseline="",
    snapshot={},
    begun={},
    cause="first",
    pins={},
    nested=[],
    directory="/",
    time=EpochTime(created=1),
)
