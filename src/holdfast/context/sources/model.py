"""`core/model`: which model answers. A switch is an update, so it does not end the epoch."""

import msgspec

from holdfast.context.source import Codec, ContextSource

KEY = "core/model"


class ModelSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A model as it is shown to itself."""

    provider: str
    id: str
    name: str


def model(*, provider: str, id: str, name: str) -> ContextSource[ModelSeen]:
    """The source, for the model that was sampled for the turn."""
    value = ModelSeen(provider=provider, id=id, name=name)

    async def load() -> ModelSeen:
        return value

    return ContextSource(
        key=KEY,
        codec=Codec(ModelSeen),
        load=load,
        waits=False,
        baseline=lambda now: f"The model that answers is {_named(now)}.",
        update=lambda _, now: f"From here on the model that answers is {_named(now)}.",
    )


def _named(value: ModelSeen) -> str:
    full = f"{value.provider}/{value.id}"
    return full if value.name in ("", value.id, full) else f"{value.name} ({full})"
