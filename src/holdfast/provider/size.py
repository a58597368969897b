"""How large a request is: estimated in tokens, and bounded in bytes before anything is sent. Pure.

The estimate is the seeds' (four characters a token): it steers compaction and never a bill. The bounds are
documented limits of the hosts; a request above one would be refused after it was sent in full.
"""

from typing import Final

import msgspec

from holdfast.errors import ProviderError
from holdfast.provider.catalog.model import WireKind
from holdfast.provider.request import Request

CHARACTERS_A_TOKEN: Final = 4

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


def estimate_request(request: Request) -> int:
    """About how many tokens the blocks of a request have."""
    blocks = msgspec.json.encode((request.tools, request.system, request.messages))
    return round(len(blocks) / CHARACTERS_A_TOKEN)


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
