"""Whether the ids of items go back to the server. Pure.

OpenAI looks an id up, and nothing is there when `store` is false; it also wants the items of one answer to be
named all or not at all. So without `store` none is sent: encrypted thinking speaks for itself. Servers that
imitate the wire look nothing up and check the shape, in which an answer has an id; they always get one.
"""

from typing import Literal

from holdfast.provider.request.request import Request

Policy = Literal["never", "known", "always"]

_OWN_PROVIDERS = frozenset({"openai", "azure"})
_OWN_PACKAGES = frozenset({"@ai-sdk/openai", "@ai-sdk/azure"})


def stores(request: Request) -> bool:
    """Whether the server shall keep the answer: only if asked to, since the history that counts is ours."""
    return request.options.get("store") is True


def policy(request: Request) -> Policy:
    """Which ids are sent, and so which are worth keeping."""
    model = request.model
    if model.npm not in _OWN_PACKAGES and (model.npm or model.provider_id not in _OWN_PROVIDERS):
        return "always"
    return "known" if stores(request) else "never"
