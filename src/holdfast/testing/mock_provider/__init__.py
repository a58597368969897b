"""A model provider on this machine that answers as a test scripts it, and misbehaves on demand.

    async with MockProvider() as mock:
        mock.play(Reply((Say("Hello"), Call("read", {"path": "a"}))), Trouble("rate-limit", retry_after="1"))
        ...                     # point a client at mock.url + "/v1"
        assert mock.requests[0].json["model"] == "m"

It speaks over real HTTP, in the format that the request's path names (`formats.py`); one turn of the script
answers one request, in order. A request that the script did not expect gets a 500 and is in `unexpected`;
turns that no request used are in `unplayed`.
"""

from holdfast.testing.mock_provider.script import Call, Raw, Reply, Said, Say, Think, Trouble, Turn, Usage
from holdfast.testing.mock_provider.server import MockProvider, Received

__all__ = [
    "Call",
    "MockProvider",
    "Raw",
    "Received",
    "Reply",
    "Said",
    "Say",
    "Think",
    "Trouble",
    "Turn",
    "Usage",
]
