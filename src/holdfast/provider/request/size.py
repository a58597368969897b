"""How large a request is: estimated in tokens, and bounded in bytes before anything is sent. Pure.

The estimate is the seeds' (four characters a token): it steers compaction and never a bill. The bounds are
documented limits of the hosts; a request above one would be refused after it was sent in full.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from holdfast.errors import ProviderError
from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request.request import Media, ProviderMessage, Request, Results, User

CHARACTERS_A_TOKEN: Final = 4
MEDIA_CHARACTERS: Final = 6_400
"""About what an image takes: 1,600 tokens."""

_MB = 1_000_000
BODY_BYTES_MAX: Final[dict[WireKind, int]] = {
    WireKind.ANTHROPIC: 32 * _MB,
    WireKind.OPENAI_CHAT: 50 * _MB,
    WireKind.OPENAI_RESPONSES: 50 * _MB,
    WireKind.GEMINI: 20 * _MB,
}


def estimate(text: str) -> int:
    """About how many tokens a text has."""
    return round(len(text) / CHARACTERS_A_TOKEN)


def characters(request: Request) -> int:
    """How long the blocks of a request are."""
    fixed = len(msgspec.json.encode((request.tools, request.system)))
    return fixed + sum(of_message(each, len(msgspec.json.encode(each))) for each in request.messages)


def of_message(message: ProviderMessage, encoded: int) -> int:
    """How long a message is, given its length as JSON. Media counts as what it takes of the model's room, not
    as the length of its bytes.
    """
    inline = [len(each.url) for each in _media(message) if each.url.startswith("data:")]
    return encoded if not inline else max(0, encoded - sum(inline)) + MEDIA_CHARACTERS * len(inline)


def _media(message: ProviderMessage) -> Iterator[Media]:
    match message:
        case User():
            yield from (each for each in message.content if isinstance(each, Media))
        case Results():
            for result in message.content:
                yield from (each for each in result.content if isinstance(each, Media))
        case _:
            return


def estimate_request(request: Request) -> int:
    """About how many tokens the blocks of a request have."""
    return round(characters(request) / CHARACTERS_A_TOKEN)


def too_large(request: Request, body: bytes) -> ProviderError | None:
    """Why a body must not be sent, if it is larger than its host takes."""
    limit = BODY_BYTES_MAX.get(request.model.wire)
    if limit is None or len(body) <= limit:
        return None
    return ProviderError(
        f"the request to {request.model.provider_id} has {len(body) / _MB:.1f} MB, and its limit is "
        f"{limit / _MB:.0f} MB; compact the session or leave out attachments",
        kind="context-overflow",
    )
