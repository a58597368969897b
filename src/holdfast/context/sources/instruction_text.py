"""How instructions are shown to a model: each text under a line that says where it is from."""

from collections.abc import Iterable

import msgspec


class InstructionText(msgspec.Struct, frozen=True):
    """The instructions of one file or address."""

    path: str
    text: str


Instructions = tuple[InstructionText, ...]
"""In the order in which they are shown."""


def block(instruction: InstructionText) -> str:
    """One text under its heading."""
    return f"Instructions from: {instruction.path}\n{instruction.text}"


def blocks(instructions: Iterable[InstructionText]) -> str:
    """Texts in order."""
    return "\n\n".join(block(each) for each in instructions)
