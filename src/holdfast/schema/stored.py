"""Which records the store keeps, and the form it keeps them in.

Ids and parents live in columns of the store. A record's JSON is kept without them: `strip` cuts them off,
`whole` splices them back in front, without decoding, and `load` makes the typed value. What must stay true:
`whole` of `strip` is the same JSON object, for every value, kept fields included.
"""

from enum import IntEnum
from typing import Any, Final, Literal, get_args

import msgspec

from holdfast.errors import InvalidInput, InvariantBroken, RecordCorrupt
from holdfast.schema.epoch import ContextEpoch
from holdfast.schema.message import AssistantMessage, Message, SystemMessage
from holdfast.schema.part import Part, ReasoningPart, TextPart, ToolPart
from holdfast.schema.project import Project
from holdfast.schema.project_records import Approval, CheckoutProject, Trust
from holdfast.schema.prompt import AdmittedPrompt
from holdfast.schema.request import InterruptRequest, PermissionRequest, QuestionRequest, Request
from holdfast.schema.session import Session
from holdfast.schema.session_lists import FileDiff, Share, Todo
from holdfast.schema.tool_state import ToolCompleted, ToolError, ToolPending, ToolRunning
from holdfast.schema.wire import Wire, decode, encode

Kind = Literal[
    "session",
    "message",
    "part",
    "prompt",
    "epoch",
    "todo",
    "request",
    "diff",
    "share",
    "project",
    "approval",
    "trust",
    "cache",
]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

HEADS: Final[dict[Kind, tuple[str, ...]]] = {
    "session": ("id",),
    "message": ("id", "sessionID"),
    "part": ("id", "sessionID", "messageID"),
    "prompt": ("id", "sessionID"),
    "epoch": ("id", "sessionID"),
    "todo": (),
    "request": ("id", "sessionID"),
    "diff": (),
    "share": (),
    "project": ("id",),
    "approval": ("id",),
    "trust": ("id",),
    "cache": ("id",),
}
"""The wire names that the store keeps in columns, in order."""

SINGLE: Final[frozenset[Kind]] = frozenset(("todo", "diff", "share"))
"""Kinds of which a session has one record, under the session's own id."""

_TYPES: Final[dict[Kind, Any]] = {
    "session": Session,
    "message": Message,
    "part": Part,
    "prompt": AdmittedPrompt,
    "epoch": ContextEpoch,
    "todo": list[Todo],
    "request": Request,
    "diff": list[FileDiff],
    "share": Share,
    "project": Project,
    "approval": Approval,
    "trust": Trust,
    "cache": CheckoutProject,
}

_PYTHON_NAMES: Final = {"id": "id", "sessionID": "session_id", "messageID": "message_id"}
_COMMA: Final = ord(",")
_quote = msgspec.json.Encoder().encode


BACKGROUND: Final = "holdfastProcess"
"""In the metadata of a settled call: the process that it started, which runs as long as it has no end."""


class Mark(IntEnum):
    """What the store notes beside a record, so that it can find these without reading JSON."""

    NONE = 0
    OPEN = 1
    """Something is still to happen to it: recovery looks here."""
    SUMMARY = 2
    """A finished compaction summary: the model's history begins at it."""
    SYSTEM = 3
    """A Mid-Conversation System Message: pages for users leave it out. Two bits hold no further mark."""


def type_of(kind: Kind) -> Any:
    """The type of a kind's value: a struct, a union of structs, or a list of structs."""
    return _TYPES[kind]


def strip(kind: Kind, value: Wire | list[Any]) -> bytes:
    """The JSON that is stored of a value: without its head (ids), which stands in columns of its own."""
    data = encode(value)
    heads = HEADS[kind]
    if not heads:
        return data
    # msgspec writes the tag before the first field, so the head is one run right after it.
    lead = _lead(type(value))
    run = b",".join(
        b'"%b":%b' % (name.encode(), _quote(getattr(value, _PYTHON_NAMES[name]))) for name in heads
    )
    end = len(lead) + len(run)
    if not data.startswith(lead) or data[len(lead) : end] != run:
        raise InvariantBroken(f"the JSON of a {kind} does not begin with its head")
    rest = data[end:]  # `,"more":…}` or the closing brace
    if lead == b"{":
        return b"{" + rest[1:] if rest[0] == _COMMA else b"{}"
    return lead[:-1] + rest


def whole(
    kind: Kind, data: bytes, *, id: str, session: str | None = None, parent: str | None = None
) -> bytes:
    """The JSON of a record with its head put back. `data` is what `strip` gave: compact, with no blank after
    the brace.
    """
    heads = HEADS[kind]
    if not heads:
        return data
    head = b'{"id":' + _quote(id)
    if len(heads) > 1:
        head += b',"sessionID":' + _quote(session)
        if len(heads) > 2:
            head += b',"messageID":' + _quote(parent)
    return head + b"}" if data == b"{}" else head + b"," + data[1:]


def load(kind: Kind, data: bytes, id: str, session: str | None = None, parent: str | None = None) -> Any:
    """The value that a stored record stands for; `RecordCorrupt` if it does not stand for any."""
    try:
        return decode(_TYPES[kind], whole(kind, data, id=id, session=session, parent=parent))
    except InvalidInput as error:
        raise RecordCorrupt(session, kind, id, str(error)) from error


def mark(value: Wire | list[Any]) -> Mark:
    """OPEN while something is still to happen, SUMMARY for a finished compaction summary, SYSTEM for a system
    message, else NONE.
    """
    match value:
        case ToolPart():
            return Mark.OPEN if _is_open(value) else Mark.NONE
        case TextPart() | ReasoningPart():
            return Mark.OPEN if value.time is not None and value.time.end is None else Mark.NONE
        case AssistantMessage():
            if value.time.completed is None:
                return Mark.OPEN
            return Mark.SUMMARY if value.summary and value.error is None else Mark.NONE
        case SystemMessage():
            return Mark.SYSTEM
        case AdmittedPrompt():
            return Mark.OPEN if value.promoted is None else Mark.NONE
        case ContextEpoch():
            return Mark.OPEN if value.time.ended is None else Mark.NONE
        case PermissionRequest() | QuestionRequest() | InterruptRequest():
            return Mark.OPEN if value.time.answered is None else Mark.NONE
        case _:
            return Mark.NONE


def _is_open(part: ToolPart) -> bool:
    """A call that is not settled, or whose process runs in the background."""
    state = part.state
    if isinstance(state, (ToolCompleted, ToolError)) and state.metadata:
        process = state.metadata.get(BACKGROUND)
        info = process.get("info") if isinstance(process, dict) else None
        return isinstance(info, dict) and info.get("end") is None
    return isinstance(state, (ToolPending, ToolRunning))


_LEADS: dict[type, bytes] = {}


def _lead(struct: type) -> bytes:
    """What an encoded value of this struct begins with, up to its first field."""
    if struct not in _LEADS:
        config = getattr(struct, "__struct_config__", None)
        if config is None:
            raise InvariantBroken(f"{struct.__name__} is no record with a head")
        tag = b"" if config.tag is None else b"%b:%b," % (_quote(config.tag_field), _quote(config.tag))
        _LEADS[struct] = b"{" + tag
    return _LEADS[struct]
