"""Providers and models of a person: catalogue, settings, credentials and environment put together."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from holdfast.errors import ContextError, InvalidInput, NotFound, ProviderError
from holdfast.provider.accounts.resolve import Providers
from holdfast.provider.accounts.secret import Credential, HostToken, Secret
from holdfast.provider.catalog import snapshot
from holdfast.provider.catalog.model import Limit, Settings, WireKind
from holdfast.provider.catalog.snapshot import Place, Snapshot
from holdfast.provider.wire.wire import Endpoint
from holdfast.schema.provider_entry import ModelEntry, ProviderEntry

RECORDS: dict[str, tuple[Place, dict[str, ModelEntry]]] = {
    "anthropic": (
        Place(name="Anthropic", npm="@ai-sdk/anthropic", env=("ANTHROPIC_API_KEY",)),
        {
            "claude-sonnet-4-5": ModelEntry(name="Sonnet", reasoning=True),
            "claude-haiku-4-5": msgspec.convert(
                {"name": "Haiku", "cost": {"input": 1, "output": 5}}, ModelEntry
            ),
        },
    ),
    "openai": (
        Place(name="OpenAI", npm="@ai-sdk/openai", env=("OPENAI_API_KEY",)),
        {"gpt-5": ModelEntry(name="GPT-5"), "gpt-5-mini": ModelEntry()},
    ),
    "azure": (
        Place(name="Azure", npm="@ai-sdk/azure", env=("AZURE_RESOURCE_NAME", "AZURE_API_KEY")),
        {"gpt-5": ModelEntry()},
    ),
    "zoo": (
        Place(name="Zoo", npm="@ai-sdk/openai-compatible", env=("ZOO_KEY",), api="https://zoo.example/v1"),
        msgspec.convert(
            {
                "plain": {},
                "messages": {
                    "provider": {"npm": "@ai-sdk/anthropic", "api": "https://zoo.example/anthropic"}
                },
                "chat": {"provider": {"npm": "@ai-sdk/azure", "shape": "completions"}},
            },
            dict[str, ModelEntry],
        ),
    ),
    "amazon-bedrock": (
        Place(name="Bedrock", npm="@ai-sdk/amazon-bedrock", env=("AWS_KEY",)),
        {"m": ModelEntry()},
    ),
    "vertex": (Place(name="Vertex", npm="@ai-sdk/google-vertex", env=("V_KEY",)), {"m": ModelEntry()}),
}
CATALOGUE = Snapshot(snapshot.encode("2026-01-01", (), RECORDS))
KEYS = {"ANTHROPIC_API_KEY": "sk-a", "OPENAI_API_KEY": "sk-o"}


def providers(
    entries: Mapping[str, Any] | None = None, *, env: Mapping[str, str] = KEYS, **more: Any
) -> Providers:
    typed = msgspec.convert(entries or {}, dict[str, ProviderEntry])
    return Providers([CATALOGUE], entries=typed, env=env, **more)


def ids(found: Providers) -> list[str]:
    return [provider.id for provider in found.available()]


def test_an_unknown_name_is_an_error_that_helps() -> None:
    """A provider, a model, and half a name."""
    found = providers()
    with pytest.raises(NotFound, match=r"no provider is called 'antropic'; did you mean anthropic\?"):
        found.provider("antropic")
    with pytest.raises(NotFound, match=r"openai has no model 'gpt5'; did you mean gpt-5\?"):
        found.named("openai/gpt5")
    with pytest.raises(
        NotFound, match="openai has no model 'zzz'; `holdfast models openai --all` lists them"
    ):
        found.named("openai/zzz")
    with pytest.raises(InvalidInput, match="names no model"):
        found.named("openai")


def test_a_provider_with_a_key_is_available() -> None:
    """And nobody else. A variable that is no key does not count."""
    assert ids(providers()) == ["anthropic", "openai"]
    assert ids(providers(env={})) == []
    assert ids(providers(env={"AZURE_RESOURCE_NAME": "mine"})) == []
    assert ids(providers(env={"AZURE_RESOURCE_NAME": "mine", "AZURE_API_KEY": "k"})) == ["azure"]


@pytest.mark.parametrize(
    ("id", "env", "problem"),
    [
        ("zoo", {}, "it has no key; set ZOO_KEY or run `holdfast providers login zoo`"),
        ("azure", {"AZURE_API_KEY": "k"}, "provider azure needs AZURE_RESOURCE_NAME in the environment"),
        ("amazon-bedrock", {"AWS_KEY": "k"}, "Amazon Bedrock has no wire here yet"),
        (
            "vertex",
            {"V_KEY": "k"},
            "Vertex AI signs in with Google Cloud credentials, which Holdfast cannot do",
        ),
    ],
)
def test_what_stands_in_the_way_is_said(id: str, env: dict[str, str], problem: str) -> None:
    """Each provider that cannot be used says why."""
    assert providers(env=env).provider(id).problem == problem


def test_the_key_nearest_to_the_person_counts() -> None:
    """Settings, then the files of credentials, then the environment; each says where it is from."""
    held = {"openai": Credential(type="api", secret=Secret("filed"), origin="opencode")}
    config = {"openai": {"options": {"apiKey": "configured"}}}
    found = [
        providers().provider("openai"),
        providers(credentials=held).provider("openai"),
        providers(config, credentials=held).provider("openai"),
    ]
    assert [(one.key and one.key.reveal(), one.origin, one.source) for one in found] == [
        ("sk-o", "env OPENAI_API_KEY", "env"),
        ("filed", "opencode", "api"),
        ("configured", "config", "config"),
    ]


def test_to_an_address_that_a_host_chose_only_its_token_goes() -> None:
    """Not a key of the settings, of the credentials or of the environment; without a token none at all."""
    entries = {
        id: {"options": {"baseURL": "https://host.example/v1", "apiKey": "configured"}, "models": {"m": {}}}
        for id in ("openai", "own")
    }
    held = {"openai": Credential(type="api", secret=Secret("filed"), origin="file")}
    chosen = {id: HostToken(Secret("token"), only=True) for id in entries}
    found = providers(entries, credentials=held, tokens=chosen)
    keys = [found.endpoint(found.model(id, "m")).key for id in entries]
    assert keys == ["token", "token"]
    assert [found.provider(id).origin for id in entries] == ["host", "host"]
    none = providers(entries, credentials=held, tokens={id: HostToken(None, only=True) for id in entries})
    assert none.provider("openai").problem == (
        "it has no key; set OPENAI_API_KEY or run `holdfast providers login openai`"
    )
    assert none.endpoint(none.model("own", "m")).key is None


def test_a_hosts_token_is_the_last_key_of_an_address_that_the_person_chose() -> None:
    """Whatever the person gave comes before it."""
    entry = {"zoo": {"options": {"baseURL": "https://host.example"}}}
    tokens = {"zoo": HostToken(Secret("token"), only=False)}
    found = [providers(entry, env=env, tokens=tokens).provider("zoo") for env in ({}, {"ZOO_KEY": "mine"})]
    assert [(one.key and one.key.reveal(), one.origin) for one in found] == [
        ("token", "host"),
        ("mine", "env ZOO_KEY"),
    ]


def test_a_sign_in_of_another_program_is_not_used() -> None:
    """It cannot be renewed here; the person is told what to do."""
    held = {"openai": Credential(type="oauth", secret=Secret("t"), origin="opencode")}
    problem = providers(env={}, credentials=held).provider("openai").problem
    assert (
        problem
        == "its sign-in by OAuth is another program's; run `holdfast providers login openai` with a key"
    )


def test_providers_are_switched_off_and_on() -> None:
    """A list of those to use, and one of those not to; the second wins."""
    assert ids(providers(disabled=["openai"])) == ["anthropic"]
    assert ids(providers(enabled=["openai"])) == ["openai"]
    assert ids(providers(enabled=["openai"], disabled=["openai"])) == []
    assert providers(disabled=["openai"]).provider("openai").problem == "it is switched off in the settings"


def test_a_provider_of_the_settings_alone() -> None:
    """A server on this machine needs no key and no package; its models are what the settings say."""
    entry = {
        "name": "Mine",
        "options": {"baseURL": "http://127.0.0.1:11434/v1/"},
        "models": {"llama": {"name": "Llama", "limit": {"context": 8192.0, "output": 1024}}},
    }
    found = providers({"mine": entry}, env={})
    assert ids(found) == ["mine"]
    model = found.named("mine/llama")
    assert (model.name, model.wire, model.limit) == (
        "Llama",
        WireKind.OPENAI_CHAT,
        Limit(context=8192, output=1024),
    )
    assert found.endpoint(model) == Endpoint(base_url="http://127.0.0.1:11434/v1")


def test_one_bad_entry_harms_only_itself() -> None:
    """A model with a wrong option is left out of lists and named when it is asked for; so is a provider."""
    models = {"bad": {"options": {"temperature": "hot"}}, "good": {}}
    found = providers({"zoo": {"options": {"timeout": "soon"}}, "openai": {"models": models}})
    assert ids(found) == ["openai", "anthropic"]
    assert sorted(found.models("openai")) == ["good", "gpt-5", "gpt-5-mini"]
    with pytest.raises(
        ContextError, match="settings of openai/bad are wrong: the option temperature must be"
    ):
        found.named("openai/bad")
    assert (
        found.provider("zoo").problem
        == "provider zoo: options.timeout must be milliseconds, or false for none"
    )


def test_the_settings_change_a_model_field_by_field() -> None:
    """What they leave out stays as the catalogue has it; an alias takes another's record."""
    models = {
        "gpt-5": {"limit": {"context": 1, "output": 2}, "options": {"reasoningEffort": "low"}},
        "mine": {"id": "gpt-5", "headers": {"x": "y"}},
    }
    found = providers({"openai": {"models": models}})
    changed, alias = found.named("openai/gpt-5"), found.named("openai/mine")
    assert (changed.name, changed.limit) == ("GPT-5", Limit(context=1, output=2))
    assert changed.settings == Settings(options={"reasoning_effort": "low"})
    assert (alias.id, alias.api_id, alias.name) == ("mine", "gpt-5", "GPT-5")
    assert alias.settings == Settings(headers={"x": "y"})


def test_models_are_allowed_and_forbidden() -> None:
    """One that is not allowed does not exist."""
    assert list(providers({"openai": {"whitelist": ["gpt-5"]}}).models("openai")) == ["gpt-5"]
    found = providers({"openai": {"blacklist": ["gpt-5"]}})
    assert list(found.models("openai")) == ["gpt-5-mini"]
    with pytest.raises(NotFound):
        found.named("openai/gpt-5")


def test_the_package_chooses_the_wire() -> None:
    """A model may have one of its own; a shape or an option asks for Chat."""
    env = {**KEYS, "ZOO_KEY": "k", "AZURE_RESOURCE_NAME": "r", "AZURE_API_KEY": "k"}
    found = providers({"azure": {"options": {"useCompletionUrls": True}}}, env=env)
    names = ["openai/gpt-5", "anthropic/claude-haiku-4-5", "azure/gpt-5", "amazon-bedrock/m", "vertex/m"]
    names += ["zoo/plain", "zoo/messages", "zoo/chat"]
    assert {name: str(found.named(name).wire) for name in names} == {
        "openai/gpt-5": "openai-responses",
        "anthropic/claude-haiku-4-5": "anthropic",
        "azure/gpt-5": "openai-chat",
        "amazon-bedrock/m": "bedrock",
        "vertex/m": "unsupported",
        "zoo/plain": "openai-chat",
        "zoo/messages": "anthropic",
        "zoo/chat": "openai-chat",
    }
    assert found.endpoint(found.named("zoo/messages")).base_url == "https://zoo.example/anthropic"
    strange = providers({"zoo": {"npm": "left-pad"}}, env=env).named("zoo/plain")
    assert strange.wire is WireKind.UNSUPPORTED


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("amazon-bedrock/m", "unsupported", "amazon-bedrock is not supported: Amazon Bedrock has no wire"),
        ("vertex/m", "unsupported", "vertex is not supported: Vertex AI signs in"),
        ("zoo/plain", "auth", "zoo cannot be used: it has no key"),
    ],
)
def test_an_endpoint_that_cannot_be_had_says_why(name: str, kind: str, told: str) -> None:
    """As the failure of a provider, by name."""
    found = providers()
    with pytest.raises(ProviderError, match=told) as caught:
        found.endpoint(found.named(name))
    assert caught.value.kind == kind


def test_the_default_model() -> None:
    """The configured one, else the best of the first provider."""
    found = providers()
    assert found.default_model("openai/gpt-5").id == "gpt-5"
    assert found.default_model(None).id == "claude-sonnet-4-5"
    assert providers({"openai": {}}).default_model(None).id == "gpt-5"
    with pytest.raises(NotFound, match="openai has no model"):
        found.default_model("openai/none")
    with pytest.raises(NotFound, match="no model can be used; run `holdfast providers login ID`"):
        providers(env={}).default_model(None)


def test_the_small_model() -> None:
    """The configured one, a small one of the same provider, or the main one."""
    found = providers()
    assert found.small_model("openai/gpt-5", found.named("anthropic/claude-sonnet-4-5")).id == "gpt-5"
    assert found.small_model(None, found.named("anthropic/claude-sonnet-4-5")).id == "claude-haiku-4-5"
    assert found.small_model(None, found.named("openai/gpt-5")).id == "gpt-5"


def test_a_later_catalogue_wins_but_keeps_what_came_from_elsewhere() -> None:
    """It knows which models are gone; those that another source added it never had."""
    place = Place(name="P", npm="@ai-sdk/openai")
    old = {"gone": ModelEntry(), "kept": ModelEntry(name="old"), "added": ModelEntry(source="litellm")}
    first = Snapshot(snapshot.encode("2026-01-01", (), {"p": (place, old)}))
    later = Snapshot(snapshot.encode("2026-01-02", (), {"p": (place, {"kept": ModelEntry(name="new")})}))
    found = Providers([first, later])
    assert {id: model.name for id, model in found.models("p").items()} == {"added": "added", "kept": "new"}


def test_no_key_is_in_a_repr() -> None:
    """Not of a provider, an entry or an endpoint."""
    entry = {
        "openai": {"options": {"apiKey": "sk-secret"}, "models": {"m": {"options": {"apiKey": "sk-secret"}}}}
    }
    found = providers(entry, env={})
    typed = msgspec.convert(entry, dict[str, ProviderEntry])
    shown = [
        found.provider("openai"),
        typed,
        found.endpoint(found.named("openai/gpt-5")),
        found.named("openai/m"),
    ]
    assert "sk-secret" not in repr(shown)
