"""How a model is named: `provider/model`, where the model's part may have slashes of its own."""

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.errors import InvalidInput

SUGGESTIONS_MAX = 3


class ModelName(NamedTuple):
    """A provider and one of its models."""

    provider_id: str
    model_id: str

    def __str__(self) -> str:
        return f"{self.provider_id}/{self.model_id}"


def parse_model(text: str) -> ModelName:
    """The name that `text` spells; the first slash parts it."""
    provider, _, model = text.strip().partition("/")
    if not provider or not model:
        raise InvalidInput(f"{text!r} names no model; write provider/model, for example openai/gpt-5")
    return ModelName(provider, model)


def suggestion(word: str, known: Iterable[str]) -> str:
    """What may have been meant, as the end of a message; empty when nothing is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=SUGGESTIONS_MAX, cutoff=0.67)
    return f"; did you mean {' or '.join(near)}?" if near else ""
