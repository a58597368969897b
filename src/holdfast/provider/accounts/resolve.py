"""Which providers and models the user has: catalogue, settings, credentials and environment put together.

Everything comes in as a value, so the answer is a function of them; `Providers` only remembers what it worked
out. What must stay true: nothing is decoded that is not asked for, and one bad entry harms only its provider.

A provider is *available* when it is not switched off, Holdfast speaks its wire, its address is known, and it
has a key or needs none (configured without any variable for one, or on this machine). To an address that a
host chose goes that host's token and no other key.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from holdfast.errors import ContextError, HoldfastError, NotFound, ProviderError
from holdfast.provider.accounts import endpoint
from holdfast.provider.accounts.secret import Credential, HostToken, Secret
from holdfast.provider.catalog import choose, packages
from holdfast.provider.catalog.compose import combine, compose
from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.catalog.name import parse_model, suggestion
from holdfast.provider.catalog.snapshot import Place, Snapshot
from holdfast.schema.provider_entry import ModelEntry, ProviderEntry
from holdfast.schema.wire import JsonMap

if TYPE_CHECKING:
    from holdfast.provider.wire.wire import Endpoint  # the wires' nouns cost 7 ms, and a list needs none

SECRET_ENDINGS = ("KEY", "TOKEN", "_PAT", "SECRET")
PLAIN_ENDINGS = (
    "_REGION",
    "_HOST",
    "_NAME",
    "_PROJECT",
    "_LOCATION",
    "_ENDPOINT",
    "_ACCOUNT_ID",
    "_GATEWAY_ID",
)
"""Variables of providers that hold no key; every other one might."""
LOOPBACK = re.compile(r"https?://(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?:[:/]|$)")
FIRST = ("anthropic", "openai", "google", "openrouter")
LAST = "local"  # a very small model, never taken where the user has another


class KnownProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A provider as this user has it. `problem` says why it cannot be used, None that it can.

    `origin` names where the key comes from, for users: `env NAME`, `config`, `file`, `opencode`, `host`, or
    nothing.
    """

    id: str
    name: str
    npm: str
    source: Literal["env", "config", "custom", "api"]
    origin: str = ""
    env: tuple[str, ...] = ()
    api: str | None = None
    key: Secret | None = None
    options: JsonMap = {}
    problem: str | None = None

    def __repr__(self) -> str:
        return f"Provider({self.id!r}, npm={self.npm!r}, origin={self.origin!r}, problem={self.problem!r})"


class Providers:
    """`snapshots`: the catalogue, the one that wins last. The rest is the user's; `tokens` are those of
    hosts, by the providers at their addresses.
    """

    def __init__(
        self,
        snapshots: Sequence[Snapshot],
        *,
        entries: Mapping[str, ProviderEntry] | None = None,
        credentials: Mapping[str, Credential] | None = None,
        env: Mapping[str, str] | None = None,
        disabled: Sequence[str] = (),
        enabled: Sequence[str] | None = None,
        tokens: Mapping[str, HostToken] | None = None,
    ) -> None:
        self._snapshots = snapshots
        self._entries = entries or {}
        self._credentials = credentials or {}
        self._env = env or {}
        self._tokens = tokens or {}
        self._disabled = frozenset(disabled)
        self._enabled = None if enabled is None else frozenset(enabled)
        self._known: dict[str, KnownProvider] = {}
        self._models: dict[tuple[str, str], Model] = {}
        """Those that were asked for: a turn asks several times."""
        self._raw: dict[str, dict[str, tuple[Snapshot, msgspec.Raw]]] = {}

    def ids(self) -> list[str]:
        """Every provider that the catalogue or the settings name."""
        found = {id for snapshot in self._snapshots for id in snapshot.head.providers}
        return sorted(found | set(self._entries))

    def key_variables(self) -> frozenset[str]:
        """Every variable that any provider, of the catalogue or of the settings, names for a key."""
        places = (place.env for snapshot in self._snapshots for place in snapshot.head.providers.values())
        entries = (entry.env or () for entry in self._entries.values())
        named = {name for names in (*places, *entries) for name in names}
        return frozenset(name for name in named if not name.endswith(PLAIN_ENDINGS))

    def provider(self, id: str) -> KnownProvider:
        """A provider, usable or not."""
        if id not in self._known:
            self._known[id] = self._make(id)
        return self._known[id]

    def available(self) -> list[KnownProvider]:
        """Those that can be used: the configured first, in their order, then the others."""
        order = {id: place for place, id in enumerate(dict.fromkeys([*self._entries, *FIRST]))}
        ids = sorted(self.ids(), key=lambda id: (order.get(id, len(order)), id == LAST, id))
        return [self._known[id] for id in ids if self.provider(id).problem is None]

    def models(self, provider_id: str) -> dict[str, Model]:
        """The models of a provider by id; one that cannot be made is left out, and named when asked for."""
        found = {}
        for id in self._model_ids(self.provider(provider_id).id):
            try:
                found[id] = self._compose(provider_id, id)
            except HoldfastError:
                continue
        return found

    def model(self, provider_id: str, model_id: str) -> Model:
        """One model. It need not be usable, but it must exist and be allowed."""
        if (made := self._models.get((provider_id, model_id))) is not None:
            return made
        self.provider(provider_id)
        known = self._model_ids(provider_id)
        if model_id not in known:
            hint = suggestion(model_id, known) or f"; `holdfast models {provider_id} --all` lists them"
            raise NotFound(f"{provider_id} has no model {model_id!r}{hint}")
        model = self._models[provider_id, model_id] = self._compose(provider_id, model_id)
        return model

    def named(self, text: str) -> Model:
        """The model that `provider/model` names."""
        name = parse_model(text)
        return self.model(name.provider_id, name.model_id)

    def endpoint(self, model: Model) -> "Endpoint":
        """Where the model is reached. What stands in the way is a `ProviderError` that says it."""
        provider = self.provider(model.provider_id)
        why = packages.find(model.npm, model.provider_id).why
        if why and model.wire in (WireKind.UNSUPPORTED, WireKind.BEDROCK):
            raise ProviderError(f"{model.provider_id} is not supported: {why}", kind="unsupported")
        if provider.problem is not None:
            raise ProviderError(f"{provider.id} cannot be used: {provider.problem}", kind="auth")
        base = endpoint.address(
            provider.id, model.npm, provider.options, self._env, model=model.base_url, provider=provider.api
        )
        return endpoint.make(provider.id, model.npm, provider.options, base, provider.key)

    def default_model(self, configured: str | None) -> Model:
        """The model of a session that names none. A configured one that does not exist is an error."""
        if configured:
            return self.named(configured)
        available = {provider.id: provider for provider in self.available()}
        ids = [id for id in available if id in self._entries] or list(available)
        for id in ids:
            found = choose.best(self.models(id).values())
            if found is not None:
                return found
        raise NotFound("no model can be used; run `holdfast providers login ID`, or configure a provider")

    def small_model(self, configured: str | None, main: Model) -> Model:
        """The model for titles and summaries: the configured one, a small one beside `main`, or `main`."""
        if configured:
            return self.named(configured)
        return choose.smallest(self.models(main.provider_id).values()) or main

    def _make(self, id: str) -> KnownProvider:
        entry = self._entries.get(id)
        place = next(
            (found for one in reversed(self._snapshots) if (found := one.head.providers.get(id))), None
        )
        if entry is None and place is None:
            hint = suggestion(id, self.ids()) or "; `holdfast models --all` lists the providers"
            raise NotFound(f"no provider is called {id!r}{hint}")
        entry = entry or ProviderEntry()
        place = place or Place(name=id, npm=packages.COMPATIBLE)
        env = place.env if entry.env is None else entry.env
        key, origin = self._key(id, entry, env)
        provider = KnownProvider(
            id=id,
            name=entry.name or place.name,
            npm=entry.npm or place.npm,
            source="api"
            if origin in ("file", "opencode", "host")
            else "env"
            if origin.startswith("env")
            else "config",
            origin=origin,
            env=env,
            api=entry.api or place.api,
            key=key,
            options=entry.options,
        )
        return msgspec.structs.replace(provider, problem=self._problem(provider))

    def _key(self, id: str, entry: ProviderEntry, env: Sequence[str]) -> tuple[Secret | None, str]:
        token = self._tokens.get(id)
        if token is not None and token.only:
            return token.secret, "host" if token.secret else ""
        given = entry.options.get("apiKey")
        if isinstance(given, str) and given:
            return Secret(given), "config"
        credential = self._credentials.get(id)
        if credential is not None and credential.type == "api":
            return credential.secret, credential.origin
        for name in env:
            # Of several variables some are no keys: a resource, an account, a region.
            if self._env.get(name) and (len(env) == 1 or name.endswith(SECRET_ENDINGS)):
                return Secret(self._env[name]), f"env {name}"
        return (None, "") if token is None else (token.secret, "host")

    def _problem(self, provider: KnownProvider) -> str | None:
        id = provider.id
        if id in self._disabled or (self._enabled is not None and id not in self._enabled):
            return "it is switched off in the settings"
        package = packages.find(provider.npm, id)
        if package.why:
            return package.why
        try:
            url = endpoint.address(
                id, provider.npm, provider.options, self._env, model=None, provider=provider.api
            )
            endpoint.settings(id, provider.options)
            local = LOOPBACK.match(url) is not None
        except HoldfastError as error:
            return str(error)
        configured = id in self._entries
        if provider.key is not None or package.keyless or (configured and (local or not provider.env)):
            return None
        if id in self._credentials and self._credentials[id].type == "oauth":
            return (
                f"its sign-in by OAuth is another program's; run `holdfast providers login {id}` with a key"
            )
        names = " or ".join(name for name in provider.env if name.endswith(SECRET_ENDINGS))
        return f"it has no key; set {names or 'one'} or run `holdfast providers login {id}`"

    def _model_ids(self, provider_id: str) -> list[str]:
        entry = self._entries.get(provider_id) or ProviderEntry()
        ids = list(dict.fromkeys([*self._records(provider_id), *entry.models]))
        return [
            id
            for id in ids
            if id not in entry.blacklist and (entry.whitelist is None or id in entry.whitelist)
        ]

    def _records(self, provider_id: str) -> dict[str, tuple[Snapshot, msgspec.Raw]]:
        """Raw records by id. A later snapshot knows what is gone, but not what we had from elsewhere."""
        if provider_id not in self._raw:
            found: dict[str, tuple[Snapshot, msgspec.Raw]] = {}
            for snapshot in self._snapshots:
                models = {id: (snapshot, raw) for id, raw in snapshot.models(provider_id).items()}
                if models:
                    kept = {id: pair for id, pair in found.items() if b'"source":' in bytes(pair[1])}
                    found = kept | models
            self._raw[provider_id] = found
        return self._raw[provider_id]

    def _record(self, provider_id: str, id: str) -> ModelEntry | None:
        pair = self._records(provider_id).get(id)
        return pair[0].model(pair[1]) if pair else None

    def _compose(self, provider_id: str, id: str) -> Model:
        provider = self.provider(provider_id)
        settings = self._entries.get(provider_id)
        entry = settings.models.get(id) if settings else None
        base = (entry.id if entry else None) or id
        record = self._record(provider_id, base) or (self._record(provider_id, id) if entry else None)
        try:
            return compose(
                provider_id,
                id,
                combine(record, entry),
                npm=provider.npm,
                completions=provider.options.get("useCompletionUrls") is True,
            )
        except HoldfastError as error:
            raise ContextError(f"the settings of {provider_id}/{id} are wrong: {error}") from error
