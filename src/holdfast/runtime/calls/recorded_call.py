"""A call of one of our tools, recorded as running."""

from holdfast.schema.part import ToolPart


class RecordedCall:
    __slots__ = ("invalid", "part")

    def __init__(self, part: ToolPart, invalid: str | None) -> None:
        self.part = part
        self.invalid = invalid
        """What the model wrote in the place of arguments, when it was no JSON object."""
