"""The id under which a content is kept: git's own."""

import hashlib


def content_id(data: bytes) -> str:
    """The id of a content, without keeping it."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
