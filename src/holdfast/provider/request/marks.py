"""Marks on content that a model's provider refused: by model, since another model may take it. Pure."""

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from holdfast.provider.catalog.model import Model
from holdfast.schema.file_part import FilePart
from holdfast.schema.part import Part, ToolPart
from holdfast.schema.tool_state import ToolCompleted

Content = FilePart | ToolCompleted
"""What can be refused by itself: a file, the result of a call."""
Marks = dict[str, str]
"""What the provider of each model (`provider/model`) reported."""
Change = Callable[[Content], Marks | None]
"""The marks that a content shall have."""

C = TypeVar("C", FilePart, ToolCompleted)


def name_of(model: Model) -> str:
    """How marks name a model."""
    return f"{model.provider_id}/{model.id}"


def is_refused(content: Content, model: Model) -> bool:
    """Whether the model is not shown the content any more."""
    return content.refused is not None and name_of(model) in content.refused


def is_marked(part: Part) -> bool:
    """Whether any model is not shown the part, or something of it."""
    return remarked(part, lambda _: None) is not part


def remarked(part: Part, marks: Change) -> Part:
    """The part with the marks that each content of it shall have; the part itself where it has them."""
    if isinstance(part, FilePart):
        return _with(part, marks(part))
    if not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted):
        return part
    state = _with(part.state, marks(part.state))
    files = [_with(file, marks(file)) for file in state.attachments or ()]
    if files != (state.attachments or []):
        state = replace(state, attachments=files)
    return part if state is part.state else replace(part, state=state)


def _with(content: C, marks: Marks | None) -> C:
    return content if marks == content.refused else replace(content, refused=marks)
