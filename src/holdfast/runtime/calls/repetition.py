"""Loops: how often in a row the model has made the same call and got the same answer. Pure.

Identical calls with different answers are no loop: the model polls for a change. Identical calls in one
answer of the model count once: it made them before it could know their results.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from holdfast.runtime.history import work
from holdfast.runtime.history.carried import CarriedCall, carried_in
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError, ToolState
from holdfast.schema.wire import JsonMap

REFUSED: Final = "doom_loop"
"""In the metadata of a call that was not run because it repeats itself: how often it was made in a row."""
PATHS_MAX: Final = 16
"""How many of a result's paths are compared. The runtime names the managed file last."""


class Made(NamedTuple):
    """What identifies a repeated call. Of calls before a compaction only a digest is left, and no ids."""

    id: str | None
    message: str | None
    tool: str
    input: JsonMap
    state: ToolState | None = None
    digest: str | None = None
    times: int = 1
    carried_refused: bool = False

    @property
    def answer(self) -> str | None:
        """The digest of its answer; None if it has none or was not run: then it proves no loop."""
        return self.digest if self.state is None else _digest(self.state)

    @property
    def refused(self) -> bool:
        """Whether it was not run because it repeats itself."""
        if isinstance(self.state, ToolError):
            return REFUSED in (self.state.metadata or {})
        return self.carried_refused


class Row(NamedTuple):
    """How often in a row a call was made, and whether the model knows that it was refused for that."""

    times: int = 1
    refused: bool = False


def made(part: ToolPart) -> Made:
    """A recorded call."""
    return Made(part.id, part.message_id, part.tool, part.state.input, part.state)


def _digest(state: ToolState) -> str | None:
    match state:
        case ToolCompleted():
            output = _unnamed(state.output, state.metadata)
            output += "".join(file.url for file in state.attachments or ())
        case ToolError(error=error, metadata=metadata) if (metadata or {}).get("outcome") == "failed":
            output = _unnamed(error, metadata or {})
        case _:
            return None
    return sha256(output.encode("utf-8", "replace")).hexdigest()[:16]


def _unnamed(output: str, metadata: JsonMap) -> str:
    """A result without the names of its files: the same result is stored under another name each time."""
    paths = metadata.get("outputPaths")
    for path in paths[-PATHS_MAX:] if isinstance(paths, list) else ():
        output = output.replace(str(path), "")
    return output


def calls_since_prompt(history: Sequence[MessageWithParts]) -> list[Made]:
    """The calls since the user's last prompt, in order; a compaction in between resets nothing."""
    calls: list[Made] = []
    for each in reversed(history):
        calls += [made(part) for part in reversed(each.parts) if isinstance(part, ToolPart)]
        if (carried := carried_in(each)) is not None:
            calls += [
                Made(None, None, call.tool, call.input, None, call.answer, call.times, call.refused)
                for call in reversed(carried.calls)
            ]
            break
        if work.begins(each):
            break
    return calls[::-1]


def repeated(before: Sequence[Made], part: ToolPart) -> Row:
    """In how many answers in a row, including this one, the same tool was called with the same input and gave
    the same answer.
    """
    count, answer, refused = 1, None, False
    message: str | None = part.message_id
    for each in reversed(before):
        if each.tool != part.tool or each.input != part.state.input:
            break
        given = each.answer
        if answer is not None and given is not None and given != answer:
            break
        answer = answer or given
        refused = refused or (each.refused and each.message != part.message_id)
        count += _further(each, message)
        message = each.message
    return Row(count, refused)


def _further(call: Made, message: str | None) -> int:
    """By how much a call lengthens a row whose neighbouring call is in this message."""
    return 0 if call.message is not None and call.message == message else call.times


def carried(history: Sequence[MessageWithParts]) -> list[CarriedCall]:
    """What a compaction carries over of the calls since the prompt: repetitions as one."""
    kept: list[CarriedCall] = []
    message: str | None = None
    for each in calls_since_prompt(history):
        last, answer = (kept[-1] if kept else None), each.answer
        same = last is not None and (last.tool, last.input) == (each.tool, each.input)
        if same and last is not None and (None in (last.answer, answer) or last.answer == answer):
            times = last.times + _further(each, message)
            refused = last.refused or each.refused
            kept[-1] = CarriedCall(last.tool, last.input, last.answer or answer, times, refused)
        else:
            kept.append(CarriedCall(each.tool, each.input, answer, each.times, each.refused))
        message = each.message
    return kept
