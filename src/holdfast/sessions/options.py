"""What a caller may choose for one prompt, besides its parts."""

import msgspec

from holdfast.schema.model import ModelRef
from holdfast.schema.output_format import OutputFormat
from holdfast.schema.prompt import Delivery


class PromptOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The keyword arguments of `prompt`, `process` and `turn`, as one value."""

    id: str | None = None
    delivery: Delivery = "steer"
    agent: str | None = None
    model: str | ModelRef | None = None
    variant: str | None = None
    system: str | None = None
    tools: dict[str, bool] | None = None
    format: OutputFormat | None = None
    no_reply: bool = False
