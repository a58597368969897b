"""Which role OpenAI's own service has for a Mid-Conversation System Message."""

import pytest

from holdfast.provider.catalog.model import WireKind
from holdfast.provider.wire import openai_role
from tests.provider.talking import a_model

OPENAI = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *((name, "developer") for name in ("o1", "o1-2024-12-17", "o3-mini", "o4-mini", "o3-pro")),
        *((name, "developer") for name in ("gpt-5", "gpt-5.2-codex", "gpt-5-mini", "gpt-6", "gpt-10")),
        ("codex-mini-latest", "developer"),
        *((name, "system") for name in ("gpt-4o", "gpt-4.1-mini", "gpt-3.5-turbo", "chatgpt-4o-latest")),
        ("ft:gpt-4o-mini-2024-07-18:acme::1", "system"),
        *((name, None) for name in ("o1-preview", "o1-mini", "o1-mini-2024-09-12", "gpt-oss-120b", "llama")),
    ],
)
def test_the_role_goes_by_the_name_of_the_model(name: str, role: str | None) -> None:
    """The previews of o1 refuse both roles, and a name that we do not know gets neither."""
    model = a_model(WireKind.OPENAI_RESPONSES, api_id=name)

    assert openai_role.of(model, OPENAI) == role


@pytest.mark.parametrize(
    ("address", "role"),
    [
        ("https://eu.api.openai.com/v1", "developer"),
        ("http://127.0.0.1:4000/v1", None),
        ("https://acme.openai.azure.com/openai/v1", None),
        ("https://api.openai.com.example/v1", None),
        ("https://openrouter.ai/api/v1", None),
    ],
)
def test_other_servers_have_none(address: str, role: str | None) -> None:
    """Whatever they call their models: one that imitates the wire may refuse the role."""
    assert openai_role.of(a_model(WireKind.OPENAI_CHAT, api_id="gpt-5"), address) == role
