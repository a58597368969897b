"""Hooks to try the dispatcher with: those of the specification that no part calls yet."""

import msgspec

from holdfast.plugins.hooks import Hook, HookInput, HookOutput
from holdfast.schema.message import MessageWithParts
from holdfast.schema.model import ModelRef
from holdfast.schema.wire import JsonMap


class ChatTurn(HookInput, frozen=True, kw_only=True):
    session_id: str
    agent: str
    model: ModelRef


class ChatParams(HookOutput, kw_only=True):
    temperature: float | None = None
    options: JsonMap = msgspec.field(default_factory=dict)


class ChatHeaders(HookOutput, kw_only=True):
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class MessagesSeen(HookInput, frozen=True, kw_only=True):
    """Nothing but the moment."""


class MessagesShown(HookOutput, kw_only=True):
    messages: list[MessageWithParts]


CHAT_PARAMS = Hook("chat.params", ChatTurn, ChatParams)
CHAT_HEADERS = Hook("chat.headers", ChatTurn, ChatHeaders)
MESSAGES_TRANSFORM = Hook("experimental.chat.messages.transform", MessagesSeen, MessagesShown)
