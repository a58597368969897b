"""A model as the catalogue knows it: limits, modalities, prices, the wire it speaks and its settings."""

from decimal import Decimal
from enum import StrEnum
from typing import Literal

import msgspec

from holdfast.schema.wire import JsonMap

Modality = Literal["text", "image", "pdf", "audio", "video"]


class WireKind(StrEnum):
    """The wire formats. Bedrock has rules for cost and caching, and no adapter yet."""

    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    GEMINI = "gemini"
    BEDROCK = "bedrock"
    SCRIPTED = "scripted"
    UNSUPPORTED = "unsupported"


class Noun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value of the catalogue."""


class Limit(Noun, frozen=True, kw_only=True):
    """In tokens; 0 means unknown. `input` is set where a provider limits it apart from `context`."""

    context: int = 0
    output: int = 0
    input: int | None = None


class Price(Noun, frozen=True, kw_only=True):
    """Money (US dollars) for a million tokens. None is unknown, which is not free."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


class Tier(Noun, frozen=True, kw_only=True):
    """The price when the request (input + cache read + cache write) is longer than `above` tokens."""

    above: int
    price: Price


class Prices(Noun, frozen=True, kw_only=True):
    base: Price
    tiers: tuple[Tier, ...] = ()


class Settings(Noun, frozen=True, kw_only=True):
    """The three domains of seed 000, kept apart: controls, Model Request Options, compatibility fields."""

    controls: JsonMap = {}
    options: JsonMap = {}
    body: JsonMap = {}
    headers: dict[str, str] = {}


class Model(Noun, frozen=True, kw_only=True):
    """`id` is what users write, `api_id` what the wire needs. `prices` is None when no price is known.

    `reasoning_field` names the field in which a Chat Completions server carries thinking, where it has one.
    """

    provider_id: str
    id: str
    api_id: str
    name: str
    wire: WireKind
    npm: str = ""
    base_url: str | None = None
    family: str = ""
    release_date: str = ""
    status: Literal["alpha", "beta", "active", "deprecated"] = "active"
    limit: Limit = Limit()
    input: frozenset[Modality] = frozenset({"text"})
    output: frozenset[Modality] = frozenset({"text"})
    attachment: bool = False
    reasoning: bool = False
    temperature: bool = True
    tool_call: bool = True
    reasoning_field: str | None = None
    prices: Prices | None = None
    settings: Settings = Settings()
    variants: dict[str, Settings] = {}
