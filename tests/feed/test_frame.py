"""A frame's wire form."""

import re

import msgspec

from holdfast.clock import SystemClock
from holdfast.feed.frame import Frame
from holdfast.schema.ids import Mint


def test_the_ids_of_frames_rise_in_the_order_in_which_they_were_made() -> None:
    """Whichever is asked for first; each keeps its own, and it is the one of the wire form."""
    mint = Mint(SystemClock())
    frames = [Frame("session.idle", mint.tick(), "ses_1", b"{}") for _ in range(50)]

    late_first = [frame.id for frame in reversed(frames)][::-1]

    assert late_first == sorted(late_first)
    assert len(set(late_first)) == 50
    assert late_first == [frame.id for frame in frames]
    assert all(re.fullmatch(r"evt_[0-9a-f]{12}[0-9A-Za-z]{14}", id) for id in late_first)
    assert msgspec.json.decode(frames[7].json()) == {
        "id": late_first[7],
        "type": "session.idle",
        "properties": {},
    }
