"""The few fields of a session's JSON that every backend keeps in columns of its own, for lists."""

from typing import Annotated

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema import typed
from holdfast.schema.stored import KINDS
from holdfast.store.batch import Scope
from holdfast.store.check import INT_MAX

KIND_NUMBER = {kind: number for number, kind in enumerate(KINDS)}
MESSAGE, PART = KIND_NUMBER["message"], KIND_NUMBER["part"]
SCOPE_NUMBER: dict[Scope, int] = {"session": 0, "project": 1, "host": 2}


class _Time(msgspec.Struct, frozen=True):
    updated: Annotated[int, msgspec.Meta(ge=-INT_MAX, le=INT_MAX)]
    archived: int | float | None = None


class _AgentRun(msgspec.Struct, frozen=True):
    agent: str


class _Info(msgspec.Struct, frozen=True):
    projectID: str  # noqa: N815 - the wire's name
    directory: str
    title: str
    time: _Time
    path: str | None = None
    parentID: str | None = None  # noqa: N815
    slug: str = ""
    placement: str | None = None
    agentRun: _AgentRun | None = None  # noqa: N815


class SessionColumns(msgspec.Struct, frozen=True):
    """What lists filter and sort by."""

    project: str
    directory: str
    path: str | None
    parent: str | None
    slug: str
    title: str
    placement: str | None
    updated: int
    archived: float | None
    agent_run: str | None
    """The agent of a session that was made for one run of it."""


_decoder = typed.decoder(_Info)


def columns_of(id: str, data: bytes) -> SessionColumns:
    """Read the columns from a session's stored JSON."""
    try:
        info = _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput(f"session {id} is not valid: {error}") from error
    archived = info.time.archived
    return SessionColumns(
        project=info.projectID,
        directory=info.directory,
        path=info.path,
        parent=info.parentID,
        slug=info.slug,
        title=info.title,
        placement=info.placement,
        updated=info.time.updated,
        archived=None if archived is None else float(archived),
        agent_run=None if info.agentRun is None else info.agentRun.agent,
    )


def stub(project: str | None, directory: str | None, at_ms: int) -> bytes:
    """What the feed shows of a removed session: where it was, and nothing of its content."""
    return msgspec.json.encode(
        {
            "slug": "",
            "projectID": project or "global",
            "directory": directory or "",
            "title": "",
            "version": "",
            "time": {"created": at_ms, "updated": at_ms},
        }
    )
