"""The role in which OpenAI's own service takes a Mid-Conversation System Message. Pure.

`developer` came with o1 and is what newer models are trained on; older chat models have `system`. The first
previews of o1 refuse both. Servers that imitate the wire may refuse either, or take it at the beginning
alone: what is not reached at OpenAI's address, or is not known by its name, has no such role here.
"""

import re
from typing import Literal
from urllib.parse import urlsplit

from holdfast.provider.catalog.model import Model

Role = Literal["developer", "system"]

_HOST = re.compile(r"(?:[a-z]{2}\.)?api\.openai\.com")
_NEITHER = re.compile(r"o1-(?:preview|mini)\b")
_DEVELOPER = re.compile(r"o\d|gpt-(?:[5-9]|\d{2})|codex-")
_SYSTEM = re.compile(r"(?:ft:)?(?:chat)?gpt-[34]")


def of(model: Model, base_url: str) -> Role | None:
    """The role for a model at an address; None where the text is wrapped."""
    name = model.api_id.lower()
    if not _HOST.fullmatch(urlsplit(base_url).hostname or "") or _NEITHER.match(name):
        return None
    if _DEVELOPER.match(name):
        return "developer"
    return "system" if _SYSTEM.match(name) else None
