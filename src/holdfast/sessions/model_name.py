"""The model that a caller names: `provider/model` as a text, or a value. Whether it exists is asked later."""

from typing import TYPE_CHECKING

from holdfast.errors import InvalidInput
from holdfast.schema.model import ModelRef, SessionModel
from holdfast.text import quoted

if TYPE_CHECKING:
    from holdfast.provider.catalog.name import ModelName

_SHOWN_MAX = 80


def model_ref(model: str | ModelRef | None) -> ModelRef | None:
    """The model of a prompt."""
    if model is None or isinstance(model, ModelRef):
        return model
    name = _parsed(model)
    return ModelRef(provider_id=name.provider_id, model_id=name.model_id)


def session_model(model: str | ModelRef | SessionModel | None) -> SessionModel | None:
    """The model of a session."""
    if model is None or isinstance(model, SessionModel):
        return model
    if isinstance(model, ModelRef):
        return SessionModel(
            id=model.model_id, provider_id=model.provider_id, variant=model.variant or "default"
        )
    name = _parsed(model)
    return SessionModel(id=name.model_id, provider_id=name.provider_id, variant="default")


def _parsed(model: object) -> "ModelName":
    from holdfast.provider.catalog.name import parse_model

    if not isinstance(model, str):
        shown = quoted(repr(model), _SHOWN_MAX)
        raise InvalidInput(f"{shown} names no model; write provider/model, for example openai/gpt-5")
    return parse_model(model)
