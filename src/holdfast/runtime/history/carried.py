"""What a compaction carried over, as data: for the next compaction and for the bounds of the work. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.runtime.history import model_view
from holdfast.runtime.history.files_touched import Ledger
from holdfast.schema import typed
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import TextPart
from holdfast.schema.wire import JsonMap

KEY: Final = "compaction"


class CarriedCall(msgspec.Struct, frozen=True):
    """A call that the model made, and how often in a row, so that a loop is noticed across a compaction.

    `answer` is a digest; `refused`: the last one was not run, since it repeated itself; `beside`: it stands
    in one answer of the model with the call before it.
    """

    tool: str
    input: JsonMap
    answer: str | None = None
    times: int = 1
    refused: bool = False
    beside: bool = False


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """What is carried over.

    `steps`, `calls` and `ratios` are not for the model: how often it has answered the prompt, what it called
    last, and how many characters a token of each model has.
    """

    request: str = ""
    system: str = ""
    owed: bool = False
    """Whether the work on the request went on when it was carried over."""
    todos: tuple[str, ...] = ()
    ledger: Ledger = Ledger()
    problems: tuple[str, ...] = ()
    steps: int = 0
    calls: tuple[CarriedCall, ...] = ()
    ratios: dict[str, float] = msgspec.field(default_factory=dict)

    def metadata(self) -> JsonMap:
        """As JSON data, for the next compaction."""
        return {KEY: msgspec.to_builtins(self)}


def carried_in(message: MessageWithParts) -> Carried | None:
    """What a compaction's own message carries over; None for every other message."""
    for part in message.parts:
        kept = part.metadata.get(KEY) if isinstance(part, TextPart) and part.metadata else None
        if kept is not None:
            try:
                return typed.convert(kept, Carried)
            except msgspec.ValidationError:
                return None  # Imported, or of another version.
    return None


def carried_before(history: Sequence[MessageWithParts]) -> Carried:
    """What the previous compaction carried over."""
    shown = model_view.project(history)
    return (carried_in(shown[0]) if shown else None) or Carried()
