"""The provider `local` among the others."""

from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import ProviderError
from holdfast.provider.accounts.resolve import Providers
from holdfast.provider.catalog import snapshot
from holdfast.provider.catalog.model import Limit, Model, Price, Prices, WireKind
from holdfast.provider.catalog.snapshot import Place, Snapshot
from holdfast.provider.instructions import choose
from holdfast.provider.local import catalogue, installable
from holdfast.provider.local.installable import SMOLLM2
from holdfast.provider.local.server import is_ours
from holdfast.schema.provider_entry import ModelEntry, ProviderEntry

OTHER = Snapshot(
    snapshot.encode(
        "2026-01-01",
        (),
        {
            "zoo": (
                Place(
                    name="Zoo", npm="@ai-sdk/openai-compatible", env=("ZOO_KEY",), api="https://zoo.example"
                ),
                {"ape": ModelEntry()},
            )
        },
    )
)


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the model would be."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = installable.file(SMOLLM2)
    path.parent.mkdir(parents=True)
    return path


def providers(*, env: dict[str, str] | None = None, **entries: dict[str, object]) -> Providers:
    own = {id: msgspec.convert(entry, ProviderEntry) for id, entry in entries.items()}
    return Providers((OTHER, *catalogue.snapshots(own)), entries=own, env=env)


def test_without_the_model_it_says_what_to_run() -> None:
    """It is known, cannot be used, and an attempt says why."""
    them = providers()

    assert them.available() == []
    with pytest.raises(ProviderError) as caught:
        them.endpoint(them.named("local/smollm2"))
    assert str(caught.value) == (
        "local cannot be used: no model is installed; run `holdfast models install smollm2`"
    )


def test_without_the_extra_it_says_what_to_install(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The missing optional part is named with its command."""
    file.touch()
    monkeypatch.setattr(catalogue, "EXTRA", "no_such_module")

    assert providers().provider("local").problem == (
        "it needs an optional part: pip install 'holdfast[local]'"
    )


def test_installed_it_needs_no_key(file: Path) -> None:
    """It can be used at once; it costs nothing, which is known; it is small, so its profile is short."""
    file.touch()
    them = providers()

    model = them.default_model(None)
    assert model == Model(
        provider_id="local",
        id="smollm2",
        api_id="smollm2",
        name="SmolLM2 135M Instruct",
        wire=WireKind.OPENAI_CHAT,
        npm="holdfast/local",
        family="smollm",
        limit=Limit(context=8_192, output=2_048),
        tool_call=False,
        prices=Prices(
            base=Price(input=Decimal(0), output=Decimal(0), cache_read=Decimal(0), cache_write=Decimal(0))
        ),
    )
    assert choose.is_brief(model)
    assert is_ours(them.endpoint(model))


def test_it_is_the_last_to_be_taken(file: Path) -> None:
    """Where a person has a key of anybody else, that one is the default."""
    file.touch()

    assert providers(env={"ZOO_KEY": "k"}).default_model(None).id == "ape"


def test_another_wire_can_be_asked_for(file: Path) -> None:
    """A model's own package chooses the wire, and the server is still ours."""
    file.touch()
    them = providers(local={"models": {"smollm2": {"provider": {"npm": "@ai-sdk/anthropic"}}}})

    model = them.named("local/smollm2")
    assert model.wire is WireKind.ANTHROPIC
    assert is_ours(them.endpoint(model))


def test_a_provider_of_the_persons_own_called_local_is_left_alone(file: Path) -> None:
    """Settings that say where `local` is mean that place alone, with none of our models."""
    file.touch()
    them = providers(local={"options": {"baseURL": "http://127.0.0.1:9/v1"}, "models": {"own": {}}})

    assert list(them.models("local")) == ["own"]
    assert not is_ours(them.endpoint(them.named("local/own")))
