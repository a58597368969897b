"""Loops: how often in a row the model has made the same call and got the same answer. Pure.

A row is counted by the model's answers, and grows as long as each answer holds the call again, with the same
result, and nothing new beside it: the same two calls in each answer are two rows. What is no loop: identical
calls with different results, since the model polls for a change; a call beside others that are new, or that
have new results; calls that take turns from answer to answer (A, B, A, B), since each has brought something
else than the one before. Identical calls in one answer count once: the model made them before it could know
their results.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

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


@dataclass(frozen=True)
class Made:
    """What identifies a repeated call. Of calls before a compaction only a digest is left, and no ids.

    `message` is the answer that it stands in; None: one of its own.
    """

    id: str | None
    message: str | None
    tool: str
    input: JsonMap
    state: ToolState | None = None
    digest: str | None = None
    times: int = 1
    carried_refused: bool = False

    @cached_property
    def call(self) -> tuple[str, bytes]:
        """The tool and its input, to be compared."""
        return self.tool, msgspec.json.encode(self.input, order="deterministic")

    @cached_property
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
            calls += reversed(_carried_over(carried.calls))
            break
        if work.begins(each):
            break
    return calls[::-1]


def _carried_over(calls: Iterable[CarriedCall]) -> list[Made]:
    """Calls from before a compaction, with a name for each answer that they stood in."""
    found: list[Made] = []
    answers = 0
    for call in calls:
        answers += not call.beside
        message = f"carried {answers}"
        found.append(Made(None, message, call.tool, call.input, None, call.answer, call.times, call.refused))
    return found


def _by_answer(calls: Iterable[Made]) -> Iterator[list[Made]]:
    """The calls of each answer of the model, together."""
    for _, together in groupby(calls, lambda each: each.message or id(each)):
        yield list(together)


def _holds(answer: Iterable[Made], calls: Iterable[Made]) -> bool:
    """Whether an answer holds all these calls, with the same results as far as they are known."""
    known: dict[tuple[str, bytes], set[str | None]] = {}
    for each in answer:
        known.setdefault(each.call, set()).add(each.answer)
    for each in calls:
        results = known.get(each.call, set())
        if not results or (each.answer is not None and results.isdisjoint((each.answer, None))):
            return False
    return True


def repeated(before: Sequence[Made], part: ToolPart) -> Row:
    """In how many answers in a row, including this one, the same tool was called with the same input and gave
    the same answer, with nothing new beside it.
    """
    row, answer, refused = 1, None, False
    later: list[Made] = []
    for calls in _by_answer(reversed(before)):
        is_this = calls[0].message == part.message_id
        same = [each for each in calls if each.tool == part.tool and each.input == part.state.input]
        if not is_this and (not same or not _holds(calls, later)):
            break
        counted = is_this
        for each in same:
            given = each.answer
            if answer is not None and given is not None and given != answer:
                return Row(row, refused)
            answer = answer or given
            refused = refused or (each.refused and not is_this)
            row += 0 if counted else each.times
            counted = True
        later = calls
    return Row(row, refused)


def carried(history: Sequence[MessageWithParts]) -> list[CarriedCall]:
    """What a compaction carries over of the calls since the prompt: answers that repeat others as one."""
    kept: list[list[CarriedCall]] = []
    for calls in _by_answer(calls_since_prompt(history)):
        last = _carried_over(kept[-1]) if kept else []
        if last and _holds(last, calls) and _holds(calls, last):
            kept[-1] = _joined([*last, *calls], last[0].times + calls[0].times)
        else:
            kept.append(_joined(calls, calls[0].times))
    return [call for answer in kept for call in answer]


def _joined(calls: Iterable[Made], times: int) -> list[CarriedCall]:
    """The calls of answers that repeat one another, each once."""
    found: list[CarriedCall] = []
    for each in calls:
        for number, other in enumerate(found):
            known = None in (other.answer, each.answer) or other.answer == each.answer
            if known and (other.tool, other.input) == (each.tool, each.input):
                answer, refused = other.answer or each.answer, other.refused or each.refused
                found[number] = msgspec.structs.replace(other, answer=answer, refused=refused)
                break
        else:
            call = CarriedCall(each.tool, each.input, each.answer, times, each.refused, beside=bool(found))
            found.append(call)
    return found
