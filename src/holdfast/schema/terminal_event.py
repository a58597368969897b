"""The events of terminals. All are live only: a terminal is in no store."""

from typing import ClassVar, Literal

from holdfast.schema.event_head import EventHead
from holdfast.schema.ids import PtyID
from holdfast.schema.terminal import Terminal
from holdfast.schema.wire import Count, Wire


class PtyProperties(Wire, frozen=True, kw_only=True):
    info: Terminal


class PtyCreated(EventHead, frozen=True, kw_only=True, tag_field="type", tag="pty.created"):
    type: ClassVar[Literal["pty.created"]] = "pty.created"
    properties: PtyProperties


class PtyUpdated(EventHead, frozen=True, kw_only=True, tag_field="type", tag="pty.updated"):
    """It has another title."""

    type: ClassVar[Literal["pty.updated"]] = "pty.updated"
    properties: PtyProperties


class OfPty(Wire, frozen=True, kw_only=True):
    id: PtyID


class PtyExitProperties(OfPty, frozen=True, kw_only=True):
    exit_code: Count


class PtyExited(EventHead, frozen=True, kw_only=True, tag_field="type", tag="pty.exited"):
    """Its program has ended; what it printed can still be read."""

    type: ClassVar[Literal["pty.exited"]] = "pty.exited"
    properties: PtyExitProperties


class PtyDeleted(EventHead, frozen=True, kw_only=True, tag_field="type", tag="pty.deleted"):
    type: ClassVar[Literal["pty.deleted"]] = "pty.deleted"
    properties: OfPty


TerminalEvent = PtyCreated | PtyUpdated | PtyExited | PtyDeleted
