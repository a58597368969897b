"""What a compaction carries over without a model: the request, todos, files, problems. Pure.

It stands in the compaction's own user message, as text for the model and as data for the next compaction.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.runtime import projecting
from holdfast.runtime.compacting import transcript
from holdfast.runtime.compacting.ledger import Ledger, ledger
from holdfast.schema.file_part import FilePart
from holdfast.schema.message import UserMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.part import TextPart, ToolPart
from holdfast.schema.todo import Todo
from holdfast.schema.tool_state import ToolError
from holdfast.schema.wire import JsonMap

KEY: Final = "compaction"
INTRODUCTION: Final = (
    "What follows was kept when this conversation was compacted. The summary comes after it, then the latest "
    "messages, word for word."
)
PROBLEMS_MAX: Final = 10
PROBLEM_CHARS_MAX: Final = 300


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """What is carried over."""

    request: str = ""
    todos: tuple[str, ...] = ()
    ledger: Ledger = Ledger()
    problems: tuple[str, ...] = ()

    def metadata(self) -> JsonMap:
        """As data, for the compaction after this one."""
        return {KEY: msgspec.to_builtins(self)}


def carried_before(history: Sequence[MessageWithParts]) -> Carried:
    """What the compaction before carried over."""
    for message in reversed(projecting.project(history)[:1]):
        for part in message.parts:
            kept = part.metadata.get(KEY) if isinstance(part, TextPart) and part.metadata else None
            if kept is not None:
                try:
                    return msgspec.convert(kept, Carried)
                except msgspec.ValidationError:
                    break
    return Carried()


def carry(
    before: Carried,
    spoken: Sequence[MessageWithParts],
    head: Sequence[MessageWithParts],
    todos: Sequence[Todo],
) -> Carried:
    """What has to be carried over when `head` is summarised."""
    current = newest_request(spoken)
    return Carried(
        request=before.request if current is None else request(current),
        todos=tuple(f"[{todo.status}] {todo.content}" for todo in todos),
        ledger=ledger(before.ledger, head),
        problems=tuple(_problems(head))[-PROBLEMS_MAX:],
    )


def newest_request(spoken: Sequence[MessageWithParts]) -> MessageWithParts | None:
    """The message with what the person asked for last."""
    return next(
        (each for each in reversed(spoken) if isinstance(each.info, UserMessage) and request(each)), None
    )


def request(message: MessageWithParts) -> str:
    """What the person said in a message, word for word; attachments by name."""
    return "\n".join(_words(message))


def _words(message: MessageWithParts) -> Iterable[str]:
    for part in message.parts:
        if isinstance(part, TextPart) and not part.synthetic and not part.ignored and part.text.strip():
            yield part.text
        elif isinstance(part, FilePart):
            yield f"[attached: {part.filename or part.mime}]"


def _problems(head: Sequence[MessageWithParts]) -> Iterable[str]:
    """Calls whose outcome nobody knows, or that a crash or a person cut off."""
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
    """What the model is told of it."""
    blocks = [INTRODUCTION]
    if carried.request:
        blocks.append(
            f"The person's current request, word for word:\n<request>\n{carried.request}\n</request>"
        )
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
