"""How records name a model: two spellings of one thing, since the specification has two."""

from holdfast.schema.wire import Wire


class ModelRef(Wire, frozen=True, kw_only=True):
    """The model of a message, a prompt or a subtask."""

    provider_id: str
    model_id: str
    variant: str | None = None


class SessionModel(Wire, frozen=True, kw_only=True):
    """The model of a session, whose key is `id`. `variant` is "default" when none was chosen."""

    id: str
    provider_id: str
    variant: str | None = None
