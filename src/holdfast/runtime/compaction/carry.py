"""What a compaction carries over without a model: the request, todos, files, problems. Pure.

It is stored in the compaction's own user message: as text for the model, and as data for the next compaction
and for the bounds of the work, which a compaction must not reset.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from holdfast.runtime.history import transcript, work
from holdfast.runtime.history.carried import Carried, CarriedCall
from holdfast.runtime.history.files_touched import Ledger, ledger
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import ToolPart
from holdfast.schema.session_lists import Todo
from holdfast.schema.tool_state import ToolError

INTRODUCTION: Final = (
    "What follows was kept when this conversation was compacted. The summary comes after it, then the latest "
    "messages, word for word."
)
CURRENT: Final = "The person's current request, word for word"
OVER: Final = "The person's last request, answered or stopped, word for word"
PROBLEMS_MAX: Final = 10
PROBLEM_CHARS_MAX: Final = 300
CALLS_KEPT: Final = 3
CALLS_MAX: Final = 16
"""With the others of the first one's answer: a call is compared together with those beside it."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The user's current request, and the instructions that came with it."""

    text: str = ""
    system: str = ""
    owed: bool = False
    """Whether the work on it continues."""
    continued: bool = False
    """Whether it includes what the previous compaction carried over."""
    messages: Sequence[MessageWithParts] = ()
    """Its messages, as far as they were not summarised before."""


def carry(
    before: Carried,
    wanted: Wanted,
    head: Sequence[MessageWithParts],
    todos: Sequence[Todo],
    *,
    steps: int = 0,
    calls: Sequence[CarriedCall] = (),
    ratios: Mapping[str, float] | None = None,
) -> Carried:
    """What has to be carried over if `head` is summarised."""
    return Carried(
        request=wanted.text,
        system=wanted.system,
        owed=wanted.owed,
        todos=tuple(f"[{todo.status}] {todo.content}" for todo in todos),
        ledger=ledger(before.ledger, head),
        problems=(*before.problems, *_problems(head))[-PROBLEMS_MAX:],
        steps=steps,
        calls=_last(calls),
        ratios=dict(ratios or {}),
    )


def _last(calls: Sequence[CarriedCall]) -> tuple[CarriedCall, ...]:
    first = max(0, len(calls) - CALLS_KEPT)
    while first and calls[first].beside and len(calls) - first < CALLS_MAX:
        first -= 1
    return tuple(calls[first:])


def besides(message: MessageWithParts) -> MessageWithParts:
    """A message without the user's own text: what came with it, and tasks."""
    return MessageWithParts(
        message.info, tuple(part for part in message.parts if work.user_text(part) is None)
    )


def _problems(head: Sequence[MessageWithParts]) -> Iterable[str]:
    """Calls with an unknown outcome, or that a crash or the user cut off."""
    for message in head:
        for part in message.parts:
            if not isinstance(part, ToolPart) or not isinstance(part.state, ToolError):
                continue
            outcome = (part.state.metadata or {}).get("outcome")
            if outcome in ("unknown", "interrupted"):
                given = transcript.shortened(
                    msgspec.json.encode(part.state.input).decode(), PROBLEM_CHARS_MAX
                )
                yield f"{part.tool} {given}: {outcome}"


def text(carried: Carried) -> str:
    """The text about it for the model."""
    blocks = [INTRODUCTION]
    if carried.request:
        # Without the distinction the model might begin again with what is done.
        block = f"{CURRENT if carried.owed else OVER}:\n<request>\n{carried.request}\n</request>"
        blocks.append(block)
    if carried.system:
        blocks.append(f"Instructions that came with it:\n{carried.system}")
    if carried.todos:
        blocks.append("The list of things to do:\n" + "\n".join(f"- {todo}" for todo in carried.todos))
    blocks += _files(carried.ledger)
    if carried.problems:
        blocks.append(
            "Calls that were cut off; look at the actual state before you rely on them:\n"
            + "\n".join(f"- {problem}" for problem in carried.problems)
        )
    return "\n\n".join(blocks)


def _files(files: Ledger) -> Iterable[str]:
    named = (("read", files.read), ("written", files.written), ("deleted", files.deleted))
    for kind, paths in named:
        if paths:
            yield f"Files that were {kind}:\n" + "\n".join(f"- {path}" for path in paths)
