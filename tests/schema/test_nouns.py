"""The records as the specification spells them: known JSON in, known values out, the same JSON back."""

import json
from typing import Any, get_args

import pytest

from holdfast.schema.event import Event, PermissionAsked, PermissionAskProperties, requesting
from holdfast.schema.fault import APIData, APIFault, Fault, NoData, OutputLengthFault
from holdfast.schema.ids import MessageID, SessionID
from holdfast.schema.message import Message
from holdfast.schema.part import Part
from holdfast.schema.project import Project
from holdfast.schema.prompt import AdmittedPrompt
from holdfast.schema.request import PermissionRequest, QuestionRequest, Request, RequestTime, ToolRef
from holdfast.schema.session import Session
from holdfast.schema.source import Source
from holdfast.schema.status import SessionStatus
from holdfast.schema.tool_state import ToolState
from holdfast.schema.wire import decode, encode

PART = {"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1"}
MESSAGE = {"id": "msg_1", "sessionID": "ses_1"}
TOKENS = {"total": 9, "input": 1, "output": 2, "reasoning": 3, "cache": {"read": 1, "write": 2}}
SPAN = {"start": 1, "end": 2}
WORDS = {"value": "@a", "start": 0, "end": 2}
PLACE = {"line": 1, "character": 2}
DIFF = {"file": "a.py", "patch": "p", "additions": 1, "deletions": 2, "status": "modified"}
FILE = {**PART, "type": "file", "mime": "text/plain", "filename": "a", "url": "file:///a"}
API_ERROR = {
    "name": "APIError",
    "data": {
        "message": "m",
        "statusCode": 429,
        "isRetryable": True,
        "responseHeaders": {"retry-after": "1"},
        "responseBody": "b",
        "metadata": {"url": "u"},
    },
}
MODEL = {"providerID": "p", "modelID": "m", "variant": "high"}
SCHEMA_FORMAT = {"type": "json_schema", "schema": {"type": "object"}, "retryCount": 2}

FAULTS: list[dict[str, Any]] = [
    {"name": "ProviderAuthError", "data": {"providerID": "p", "message": "m"}},
    {"name": "UnknownError", "data": {"message": "m", "ref": "err_1"}},
    {"name": "MessageOutputLengthError", "data": {}},
    {"name": "MessageAbortedError", "data": {"message": "m"}},
    {"name": "StructuredOutputError", "data": {"message": "m", "retries": 2}},
    {"name": "ContextOverflowError", "data": {"message": "m", "responseBody": "b"}},
    {"name": "ContentFilterError", "data": {"message": "m"}},
    {"name": "BudgetExceededError", "data": {"message": "m"}},
    {"name": "ContextUnavailableError", "data": {"message": "m"}},
    API_ERROR,
]
SOURCES: list[dict[str, Any]] = [
    {"type": "file", "text": WORDS, "path": "a.py"},
    {
        "type": "symbol",
        "text": WORDS,
        "path": "a.py",
        "range": {"start": PLACE, "end": PLACE},
        "name": "f",
        "kind": 12,
    },
    {"type": "resource", "text": WORDS, "clientName": "c", "uri": "u"},
]
STATES: list[dict[str, Any]] = [
    {"status": "pending", "input": {}, "raw": '{"a"'},
    {"status": "running", "input": {"a": 1}, "title": "t", "metadata": {"m": 1}, "time": {"start": 1}},
    {
        "status": "completed",
        "input": {"a": 1},
        "output": "o",
        "title": "t",
        "metadata": {"m": None},
        "time": {"start": 1, "end": 2, "compacted": 3},
        "attachments": [FILE],
    },
    {
        "status": "error",
        "input": {"a": 1},
        "error": "e",
        "metadata": {"interrupted": True},
        "time": SPAN,
    },
]
PARTS: list[dict[str, Any]] = [
    {
        **PART,
        "type": "text",
        "text": "t",
        "synthetic": True,
        "ignored": False,
        "time": SPAN,
        "metadata": {"a": 1},
    },
    {**PART, "type": "reasoning", "text": "t", "time": {"start": 1}, "metadata": {"signature": "s"}},
    *({**FILE, "source": source} for source in SOURCES),
    *({**PART, "type": "tool", "callID": "c", "tool": "t", "state": s, "metadata": {}} for s in STATES),
    {**PART, "type": "step-start", "snapshot": "h"},
    {**PART, "type": "step-finish", "reason": "stop", "snapshot": "h", "cost": 0.25, "tokens": TOKENS},
    {**PART, "type": "snapshot", "snapshot": "h"},
    {**PART, "type": "patch", "hash": "h", "files": ["/a"]},
    {**PART, "type": "agent", "name": "explore", "source": WORDS},
    {**PART, "type": "retry", "attempt": 1, "error": API_ERROR, "time": {"created": 1}},
    {**PART, "type": "compaction", "auto": True, "overflow": False, "tail_start_id": "msg_0"},
    {
        **PART,
        "type": "subtask",
        "prompt": "p",
        "description": "d",
        "agent": "a",
        "model": {"providerID": "p", "modelID": "m"},
        "command": "c",
    },
]
MESSAGES: list[dict[str, Any]] = [
    {
        **MESSAGE,
        "role": "user",
        "time": {"created": 1},
        "agent": "build",
        "model": MODEL,
        "format": SCHEMA_FORMAT,
        "system": "s",
        "tools": {"bash": False},
        "summary": {"title": "t", "body": "b", "diffs": [DIFF]},
    },
    {
        **MESSAGE,
        "role": "assistant",
        "time": {"created": 1, "completed": 2},
        "parentID": "msg_0",
        "modelID": "m",
        "providerID": "p",
        "mode": "build",
        "agent": "build",
        "path": {"cwd": "/d", "root": "/"},
        "cost": 0.5,
        "tokens": TOKENS,
        "error": FAULTS[0],
        "summary": True,
        "structured": {"a": [1]},
        "variant": "high",
        "finish": "stop",
    },
    {
        **MESSAGE,
        "role": "system",
        "time": {"created": 1},
        "text": "t",
        "snapshot": {"core/date": {"value": "d"}},
    },
]
SESSION: dict[str, Any] = {
    "id": "ses_1",
    "slug": "calm-otter",
    "projectID": "abc",
    "workspaceID": "wrk_1",
    "directory": "/d",
    "path": "",
    "parentID": "ses_0",
    "summary": {"additions": 1, "deletions": 2, "files": 3, "diffs": [DIFF]},
    "cost": 0.5,
    "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 1, "write": 2}},
    "share": {"url": "u"},
    "title": "t",
    "agent": "build",
    "model": {"id": "m", "providerID": "p", "variant": "default"},
    "version": "1",
    "metadata": {"a": None},
    "time": {"created": 1, "updated": 2, "compacting": 3, "archived": -4.5},
    "permission": [{"permission": "edit", "pattern": "*", "action": "deny"}],
    "revert": {
        "messageID": "msg_1",
        "partID": "prt_1",
        "snapshot": "h",
        "diff": "d",
        "files": [{"path": "a", "status": "added", "additions": 1, "deletions": 0, "patch": "p"}],
    },
    "placement": "here",
}
PROMPT = {
    **MESSAGE,
    "parts": [
        {"type": "text", "id": "prt_1", "text": "t", "synthetic": True, "time": SPAN, "metadata": {}},
        {"type": "file", "mime": "m", "filename": "f", "url": "u", "source": SOURCES[0]},
        {"type": "agent", "name": "a", "source": WORDS},
        {"type": "subtask", "prompt": "p", "description": "d", "agent": "a", "model": MODEL, "command": "c"},
    ],
    "delivery": "queue",
    "agent": "build",
    "model": MODEL,
    "variant": "high",
    "system": "s",
    "tools": {"bash": True},
    "format": {"type": "text"},
    "noReply": True,
    "time": {"created": 1},
    "promoted": 2,
}
REQUESTS: list[dict[str, Any]] = [
    {
        "type": "permission",
        "id": "per_1",
        "sessionID": "ses_1",
        "permission": "bash",
        "patterns": ["ls *"],
        "metadata": {},
        "always": ["ls *"],
        "tool": {"messageID": "msg_1", "callID": "c"},
        "time": {"created": 1, "answered": 2},
        "answer": {"reply": "reject", "message": "no"},
    },
    {
        "type": "question",
        "id": "que_1",
        "sessionID": "ses_1",
        "questions": [
            {
                "question": "q",
                "header": "h",
                "options": [{"label": "l", "description": "d"}],
                "multiple": True,
                "custom": False,
            }
        ],
        "tool": {"messageID": "msg_1", "callID": "c"},
        "time": {"created": 1, "answered": 2},
        "answer": {"answers": [["l"], []]},
    },
    {"type": "interrupt", "id": "evt_1", "sessionID": "ses_1", "reason": "r", "time": {"created": 1}},
]
PROJECT = {
    "id": "abc",
    "worktree": "/w",
    "vcs": "git",
    "name": "n",
    "icon": {"url": "u", "override": "o", "color": "c"},
    "commands": {"start": "s"},
    "time": {"created": 1, "updated": 2, "initialized": 3},
    "sandboxes": ["/x"],
}
STATUSES: list[dict[str, Any]] = [
    {"type": "idle"},
    {"type": "busy"},
    {
        "type": "retry",
        "attempt": 1,
        "message": "m",
        "action": {"reason": "r", "provider": "p", "title": "t", "message": "m", "label": "l", "link": "k"},
        "next": 5,
    },
]
OF = {"sessionID": "ses_1"}
TERMINAL = {
    "id": "pty_1",
    "title": "Terminal 1",
    "command": "/bin/sh",
    "args": [],
    "cwd": "/work/app",
    "status": "exited",
    "pid": 42,
    "exitCode": 0,
}
EVENTS: list[dict[str, Any]] = [
    *(
        {"id": "evt_1", "type": f"session.{what}", "properties": {**OF, "info": SESSION}}
        for what in ("created", "updated", "deleted")
    ),
    {"type": "session.diff", "properties": {**OF, "diff": [DIFF]}},
    {"type": "session.error", "properties": {**OF, "error": FAULTS[0]}},
    {"type": "session.error", "properties": {}},
    {"type": "session.status", "properties": {**OF, "status": STATUSES[0]}},
    {"type": "session.idle", "properties": OF},
    {"type": "session.compacted", "properties": OF},
    {"type": "message.updated", "properties": {**OF, "info": MESSAGES[0]}},
    {"type": "message.removed", "properties": {**OF, "messageID": "msg_1"}},
    {"type": "message.part.updated", "properties": {**OF, "part": PARTS[0], "time": 1}},
    {"type": "message.part.removed", "properties": {**OF, "messageID": "msg_1", "partID": "prt_1"}},
    {
        "type": "message.part.delta",
        "properties": {
            **OF,
            "messageID": "msg_1",
            "partID": "prt_1",
            "field": "text",
            "delta": "d",
            "offset": 3,
        },
    },
    {"type": "file.edited", "properties": {"file": "/work/app/a.py"}},
    {"type": "file.watcher.updated", "properties": {"file": "/work/app/a.py", "event": "unlink"}},
    {"type": "mcp.tools.changed", "properties": {"directory": "/work/app", "server": "docs"}},
    {
        "type": "mcp.status",
        "properties": {"directory": "/work/app", "server": "docs", "status": "failed", "error": "it ended"},
    },
    {
        "type": "todo.updated",
        "properties": {**OF, "todos": [{"content": "c", "status": "pending", "priority": "low"}]},
    },
    {
        "type": "permission.asked",
        "properties": {
            "id": "per_1",
            **OF,
            "permission": "bash",
            "patterns": [],
            "metadata": {},
            "always": [],
            "tool": {"messageID": "msg_1", "callID": "c"},
        },
    },
    {"type": "permission.replied", "properties": {**OF, "requestID": "per_1", "reply": "once"}},
    {
        "type": "question.asked",
        "properties": {"id": "que_1", **OF, "questions": REQUESTS[1]["questions"]},
    },
    {"type": "question.replied", "properties": {**OF, "requestID": "que_1", "answers": [["a"]]}},
    {"type": "question.rejected", "properties": {**OF, "requestID": "que_1"}},
    {"type": "project.updated", "properties": PROJECT},
    {"type": "pty.created", "properties": {"info": TERMINAL}},
    {"type": "pty.updated", "properties": {"info": {**TERMINAL, "title": "t"}}},
    {"type": "pty.exited", "properties": {"id": "pty_1", "exitCode": 0}},
    {"type": "pty.deleted", "properties": {"id": "pty_1"}},
]

SPELT: list[tuple[Any, dict[str, Any]]] = [
    *((Fault, fault) for fault in FAULTS),
    *((Source, source) for source in SOURCES),
    *((ToolState, state) for state in STATES),
    *((Part, part) for part in PARTS),
    *((Message, message) for message in MESSAGES),
    (Session, SESSION),
    (AdmittedPrompt, PROMPT),
    *((Request, request) for request in REQUESTS),
    (Project, PROJECT),
    *((SessionStatus, status) for status in STATUSES),
    *((Event, event) for event in EVENTS),
]


@pytest.mark.parametrize(
    ("type_", "tree"),
    [
        (Part, {**PARTS[0], "id": None}),
        (Part, {key: item for key, item in PARTS[1].items() if key != "time"}),
        (ToolState, {**STATES[0], "status": "done"}),
        (ToolState, {**STATES[0], "input": []}),
        (Message, {**MESSAGES[0], "role": "tool"}),
        (Session, {**SESSION, "permission": [{"permission": "edit", "pattern": "*", "action": "maybe"}]}),
        (Session, {**SESSION, "time": {"created": 1}}),
        (AdmittedPrompt, {**PROMPT, "delivery": "later"}),
        (Request, {**REQUESTS[0], "answer": {"reply": "never"}}),
        (Fault, {"name": "OtherError", "data": {}}),
    ],
)
def test_what_the_specification_does_not_have_is_refused(type_: Any, tree: dict[str, Any]) -> None:
    """A missing field, a wrong type, or a word outside a closed set."""
    from holdfast.errors import InvalidInput

    with pytest.raises(InvalidInput):
        decode(type_, json.dumps(tree))


@pytest.mark.parametrize(("type_", "tree"), SPELT)
def test_every_field_of_the_specification_is_known(type_: Any, tree: dict[str, Any]) -> None:
    """The full JSON of each type decodes with nothing left over, and comes back the same."""
    value = decode(type_, json.dumps(tree))

    assert json.loads(encode(value)) == tree
    assert getattr(value, "extra", None) is None


@pytest.mark.parametrize(
    ("union", "trees"),
    [
        (Part, PARTS),
        (Message, MESSAGES),
        (Fault, FAULTS),
        (Source, SOURCES),
        (Request, REQUESTS),
        (Event, EVENTS),
    ],
)
def test_every_member_of_a_union_is_shown_here(union: Any, trees: list[dict[str, Any]]) -> None:
    """No kind was forgotten above: twelve parts, eight faults, and so on."""
    shown = {type(decode(union, json.dumps(tree))) for tree in trees}

    assert shown == set(get_args(union))


def test_named_errors_are_values() -> None:
    """A fault is told apart by its name, and one without data has an empty object."""
    assert decode(Fault, '{"name":"MessageOutputLengthError","data":{}}') == OutputLengthFault(data=NoData())
    assert decode(Fault, '{"name":"APIError","data":{"message":"m","isRetryable":false}}') == APIFault(
        data=APIData(message="m", is_retryable=False)
    )


def test_a_request_is_announced_as_clients_know_it() -> None:
    """The event has the request without our time, answer and tag."""
    request = PermissionRequest(
        id="per_1",
        session_id=SessionID("ses_1"),
        permission="bash",
        patterns=["ls"],
        metadata={},
        always=["ls *"],
        tool=ToolRef(message_id=MessageID("msg_1"), call_id="c"),
        time=RequestTime(created=1),
    )

    assert requesting(request) == PermissionAsked(
        properties=PermissionAskProperties(
            id="per_1",
            session_id=SessionID("ses_1"),
            permission="bash",
            patterns=["ls"],
            metadata={},
            always=["ls *"],
            tool=ToolRef(message_id=MessageID("msg_1"), call_id="c"),
        )
    )


def test_a_question_is_announced_too() -> None:
    """With its questions, and without a tool if none asked."""
    request = QuestionRequest(
        id="que_1", session_id=SessionID("ses_1"), questions=[], time=RequestTime(created=1)
    )

    assert (
        encode(requesting(request))
        == b'{"type":"question.asked","properties":{"id":"que_1","sessionID":"ses_1","questions":[]}}'
    )
