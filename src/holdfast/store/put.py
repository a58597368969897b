"""The change that writes a value: its kind, id, parent and mark follow from what it is."""

from typing import Any

from holdfast.schema import stored
from holdfast.schema.epoch import ContextEpoch
from holdfast.schema.message import Message
from holdfast.schema.part import Part
from holdfast.schema.project import Project
from holdfast.schema.project_records import Approval, CheckoutProject, Trust
from holdfast.schema.prompt import AdmittedPrompt
from holdfast.schema.request import Request
from holdfast.schema.session import Session
from holdfast.schema.session_lists import FileDiff, Todo
from holdfast.schema.stored import Kind
from holdfast.store.batch import Put

OfSession = Message | Part | AdmittedPrompt | ContextEpoch | Request
"""What belongs to a session and has an id of its own."""
OfScope = Project | Approval | Trust | CheckoutProject
"""What belongs to a project or to a host."""


def put(value: Session | OfSession, *, placed: bool = False) -> Put:
    """Write a value of a session. `placed`: at a new place in the model's history (a promotion)."""
    if isinstance(value, Session):
        return Put(value.id, "session", value.id, stored.strip("session", value))
    kind = _kind(value)
    parent = value.message_id if kind == "part" else None  # type: ignore[union-attr]
    return Put(
        value.session_id, kind, value.id, stored.strip(kind, value), parent, stored.mark(value), placed
    )


def put_in(scope: str, value: OfScope) -> Put:
    """Write a value of a project or a host."""
    kind = _kind(value)
    return Put(scope, kind, value.id, stored.strip(kind, value))


def put_list(session: str, kind: Kind, items: list[Todo] | list[FileDiff] | list[Any]) -> Put:
    """Write the one list of its kind that a session has."""
    return Put(session, kind, session, stored.strip(kind, items))


def _kind(value: OfSession | OfScope) -> Kind:
    match value:
        case AdmittedPrompt():
            return "prompt"
        case ContextEpoch():
            return "epoch"
        case Project():
            return "project"
        case Approval():
            return "approval"
        case Trust():
            return "trust"
        case CheckoutProject():
            return "cache"
        case _ if isinstance(value, Message):
            return "message"
        case _ if isinstance(value, Request):
            return "request"
        case _:
            return "part"
