"""What the commands know of providers: the person's settings, credentials, environment and catalogue."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.provider import credentials
from holdfast.provider.catalog import refresh
from holdfast.provider.resolve import Providers
from holdfast.schema.provider_entry import ProviderEntry


class ProviderSettings(NamedTuple):
    """The settings that concern providers."""

    entries: Mapping[str, ProviderEntry] = {}
    disabled: Sequence[str] = ()
    enabled: Sequence[str] | None = None
    model: str | None = None
    small_model: str | None = None


def read() -> ProviderSettings:
    """The person's settings where they stand."""
    return ProviderSettings()


def providers() -> Providers:
    """Everything put together."""
    settings = read()
    held = credentials.load()
    # A host's token goes by a name that its settings use; the person's own environment wins.
    tokens = {name: secret.reveal() for name, secret in credentials.variables(held).items()}
    return Providers(
        refresh.snapshots(),
        entries=settings.entries,
        credentials=held,
        env=tokens | dict(os.environ),
        disabled=settings.disabled,
        enabled=settings.enabled,
    )
