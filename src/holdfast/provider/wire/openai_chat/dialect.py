"""What one server of this wire needs that others do not, known by the model's names."""

import msgspec

from holdfast.provider.catalog.model import Model
from holdfast.provider.request import cache_marks

_OWN_PROVIDERS = frozenset({"openai", "azure"})
_OWN_PACKAGES = frozenset({"@ai-sdk/openai", "@ai-sdk/azure"})
# Servers of open models; their templates join the items, and many refuse two messages of the user's in a row.
_LOCAL_PROVIDERS = frozenset({"local", "ollama", "lmstudio", "llamacpp", "vllm"})


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How a server differs.

    `own`: OpenAI's own service. `mistral`: Mistral's own. `lists`: the user's content is always a list of
    items. `marks`: so is every role's, since a cache mark sits on an item and moves on. `short_ids`: a call's
    id has nine letters or digits, and the user may not speak right after a tool. `plain_ids`: ids of letters,
    digits, `_` and `-`. `always_reasons`: each assistant message carries the field of its thinking.
    `details`: thinking goes back as opaque items.
    """

    own: bool
    mistral: bool
    lists: bool
    marks: bool
    short_ids: bool
    plain_ids: bool
    always_reasons: bool
    details: bool
    reasoning_field: str | None


def of(model: Model) -> Dialect:
    """The dialect of a model's server."""
    name = model.api_id.lower()
    deepseek = model.provider_id == "deepseek" or "deepseek" in name
    router = model.provider_id == "openrouter" or model.npm == "@openrouter/ai-sdk-provider"
    always = deepseek and model.reasoning and not router
    field = model.reasoning_field or ("reasoning_content" if always else None)
    own = model.npm in _OWN_PACKAGES or (not model.npm and model.provider_id in _OWN_PROVIDERS)
    mistral = model.npm == "@ai-sdk/mistral" or (not model.npm and model.provider_id == "mistral")
    marks = cache_marks.takes_marks(model)
    return Dialect(
        own=own,
        mistral=mistral,
        lists=own or mistral or router or marks or model.provider_id in _LOCAL_PROVIDERS,
        marks=marks,
        short_ids=model.provider_id == "mistral" or "mistral" in name or "devstral" in name,
        plain_ids="claude" in name,
        always_reasons=always,
        details=router or field == "reasoning_details",
        # The details are a field of their own; beside them the plain text would be sent twice.
        reasoning_field=None if router or field == "reasoning_details" else field,
    )
