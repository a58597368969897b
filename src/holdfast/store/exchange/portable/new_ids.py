"""Gives a copy of a session ids of its own, and turns every reference inside it to them.

What refers: an answer to its question, a compaction to its tail, a revert to its message and part, a request
to its tool call, an attachment to its message, a task's call to the session that it started, a child to its
parent. `metadata.fork` says where a session once came from and stays as it is; so does free text.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.schema.ids import MessageID, Mint, PartID, Prefix, SessionID
from holdfast.schema.message import AssistantMessage, Message
from holdfast.schema.part import CompactionPart, Part, ToolPart
from holdfast.schema.prompt import AdmittedPrompt
from holdfast.schema.request import PermissionRequest, QuestionRequest
from holdfast.schema.session import Session
from holdfast.schema.tool_state import ToolCompleted, ToolPending, ToolState


class Renaming(msgspec.Struct, frozen=True):
    """What each id of the file is called in the store. Without a mint, everything keeps its name."""

    sessions: dict[str, str]
    messages: dict[str, str]
    parts: dict[str, str]
    mint: Mint | None

    def session(self, session: Session) -> Session:
        """The session under its new id; its parent too, if the file holds it."""
        if self.mint is None:
            return session
        revert = session.revert
        if revert is not None:
            part = None if revert.part_id is None else self._part(revert.part_id)
            revert = replace(revert, message_id=self._message(revert.message_id), part_id=part)
        parent = session.parent_id
        return replace(
            session,
            id=self._session(session.id),
            parent_id=None if parent is None else self._session(parent),
            revert=revert,
        )

    def message(self, message: Message) -> Message:
        """A message under its new id."""
        if self.mint is None:
            return message
        id, session = self._message(message.id), self._session(message.session_id)
        if isinstance(message, AssistantMessage):
            parent = self._message(message.parent_id)
            return replace(message, id=id, session_id=session, parent_id=parent)
        return replace(message, id=id, session_id=session)

    def part(self, part: Part) -> Part:
        """A part under its new id."""
        if self.mint is None:
            return part
        if isinstance(part, CompactionPart) and part.tail_start_id is not None:
            part = replace(part, tail_start_id=self._message(part.tail_start_id))
        if isinstance(part, ToolPart):
            part = replace(part, state=self._state(part.state))
        return replace(
            part,
            id=self.parts[part.id],
            session_id=self._session(part.session_id),
            message_id=self._message(part.message_id),
        )

    def beside(self, value: Any) -> Any:
        """An epoch, a prompt or a request. A prompt keeps sharing its id with the message it became."""
        if self.mint is None:
            return value
        value = replace(value, session_id=self._session(value.session_id))
        match value:
            case AdmittedPrompt():
                new = self.messages.setdefault(value.id, self.mint.ascending("msg"))
                parts = [
                    replace(part, id=None if part.id is None else self._part(part.id)) for part in value.parts
                ]
                return replace(value, id=MessageID(new), parts=parts)
            case PermissionRequest():
                return self._request(value, "per")
            case QuestionRequest():
                return self._request(value, "que")
            case _:
                return value

    def _request(self, value: PermissionRequest | QuestionRequest, prefix: Prefix) -> Any:
        assert self.mint is not None
        tool = value.tool
        if tool is not None:
            tool = replace(tool, message_id=self._message(tool.message_id))
        return replace(value, id=self.mint.ascending(prefix), tool=tool)

    def _state(self, state: ToolState) -> ToolState:
        if isinstance(state, ToolPending):
            return state
        metadata = state.metadata
        child = metadata.get("sessionId") if metadata else None
        if metadata and isinstance(child, str) and child in self.sessions:
            state = replace(state, metadata={**metadata, "sessionId": self.sessions[child]})
        if isinstance(state, ToolCompleted) and state.attachments is not None:
            assert self.mint is not None
            files = [
                replace(
                    file,
                    id=PartID(self.mint.ascending("prt")),
                    session_id=self._session(file.session_id),
                    message_id=self._message(file.message_id),
                )
                for file in state.attachments
            ]
            state = replace(state, attachments=files)
        return state

    def _session(self, id: str) -> SessionID:
        return SessionID(self.sessions.get(id, id))

    def _message(self, id: str) -> MessageID:
        return MessageID(self.messages.get(id, id))

    def _part(self, id: str) -> PartID:
        return PartID(self.parts.get(id, id))
