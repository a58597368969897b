"""The content of a media block: what a `data:` address holds, in the forms that the wires want."""

import base64
import binascii
from urllib.parse import unquote_to_bytes

import msgspec

from holdfast.provider.request.request import Media


class Inline(msgspec.Struct, frozen=True):
    """Content that travels inside the request."""

    mime: str
    base64: str

    @property
    def url(self) -> str:
        """The content as a `data:` address in its plainest form."""
        return f"data:{self.mime};base64,{self.base64}"

    def text(self) -> str:
        """The content as text; what is no UTF-8 is replaced."""
        return base64.b64decode(self.base64).decode("utf-8", "replace")


def inline(media: Media) -> Inline | None:
    """What a `data:` address holds; None for another address, or one that cannot be read."""
    if not media.url.startswith("data:"):
        return None
    head, comma, body = media.url.partition(",")
    if not comma:
        return None
    try:
        if head.endswith(";base64"):
            content = "".join(body.split())
            base64.b64decode(content, validate=True)
        else:
            content = base64.b64encode(unquote_to_bytes(body)).decode()
    except (binascii.Error, ValueError):
        return None
    return Inline(media.mime, content)


def absent(media: Media) -> str:
    """What the model gets in the place of content that this wire cannot carry."""
    name = f'"{media.filename}"' if media.filename else f"of type {media.mime}"
    return f"[The file {name} could not be sent to this model. Tell the user so.]"
