"""Creates sessions, and records the project of their directory."""

import os
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from holdfast.errors import InvalidInput
from holdfast.location.project import GLOBAL, Location, locate
from holdfast.schema import ids, slug, title, usage
from holdfast.schema.ids import ProjectID, SessionID
from holdfast.schema.model import ModelRef, SessionModel
from holdfast.schema.permission import Rule
from holdfast.schema.project import Project, ProjectTime
from holdfast.schema.project_records import CheckoutProject
from holdfast.schema.session import AgentRun, Session, SessionTime
from holdfast.schema.times import Created
from holdfast.sessions.access import StoreAccess, put_session, require_session
from holdfast.sessions.model_name import session_model
from holdfast.sessions.projects import remembered
from holdfast.store.batch import Batch, Change, Expectation, Unchanged, host_scope, project_scope
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put_in
from holdfast.version import __version__

TITLE_MAX = 2_000


async def create(
    access: StoreAccess,
    *,
    directory: str | os.PathLike[str] | None = None,
    parent: str | None = None,
    title_: str | None = None,
    permission: Sequence[Rule] | None = None,
    agent: str | None = None,
    model: str | ModelRef | SessionModel | None = None,
    metadata: dict[str, object] | None = None,
    id: str | None = None,
    agent_run: AgentRun | None = None,
) -> Session:
    """Create a session. A child works in its parent's directory unless `directory` is given."""
    if parent is not None:
        above = (await require_session(access, parent)).value()
        directory = directory if directory is not None else above.directory
    here = await locate_directory(access, directory if directory is not None else Path.cwd())
    session = new_session(access, here, parent=parent, given=id, title_=title_)
    session = replace(
        session,
        permission=None if permission is None else list(permission),
        agent=agent,
        model=session_model(model),
        metadata=None if metadata is None else checked_metadata(metadata),
        agent_run=agent_run,
    )
    await on_conflict(lambda: _commit(access, here, session))
    return session


async def _commit(access: StoreAccess, here: Location, session: Session) -> None:
    changes, expect = await project_changes(access, here)
    await access.store.commit(
        Batch((*changes, put_session(session)), (*expect, Unchanged(session.id, "session", session.id, 0)))
    )


def new_session(
    access: StoreAccess,
    here: Location,
    *,
    parent: str | None = None,
    given: str | None = None,
    title_: str | None = None,
) -> Session:
    """The value of a new session in a directory."""
    now_ms = access.clock.now_ms()
    return Session(
        id=SessionID(access.mint.descending("ses", given)),
        slug=slug.make(),
        project_id=ProjectID(here.project),
        directory=here.directory,
        path=here.path,
        parent_id=None if parent is None else SessionID(ids.check("ses", parent)),
        cost=0,
        tokens=usage.ZERO,
        title=title.default(now_ms, child=parent is not None) if title_ is None else checked_title(title_),
        version=__version__,
        time=SessionTime(created=now_ms, updated=now_ms),
        placement=access.host.id,
    )


def checked_title(text: str) -> str:
    """The title on one line; `InvalidInput` if it is empty or too long."""
    cleaned = " ".join(text.split())
    if not cleaned or len(cleaned) > TITLE_MAX:
        raise InvalidInput(f"a title has 1 to {TITLE_MAX} characters; this one has {len(cleaned)}")
    return cleaned


def checked_metadata(metadata: dict[str, object]) -> dict[str, object]:
    """Metadata as it will be read back from JSON; `InvalidInput` if it is no JSON."""
    try:
        plain = msgspec.json.decode(msgspec.json.encode(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"metadata must be JSON: {error}") from error
    assert isinstance(plain, dict)
    return plain


async def locate_directory(access: StoreAccess, directory: str | os.PathLike[str]) -> Location:
    """Locate a directory, with the project id that is recorded for its checkout."""
    entries = await access.store.select("cache", session=host_scope(access.host.id))
    return await anyio.to_thread.run_sync(locate, directory, remembered(entries))


async def project_changes(access: StoreAccess, here: Location) -> tuple[list[Change], list[Expectation]]:
    """The changes that record the project of a directory; none if it is recorded already."""
    scope = project_scope(here.project)
    record = await access.store.get(scope, "project", here.project)
    now_ms = access.clock.now_ms()
    if record is None:
        project = Project(
            id=ProjectID(here.project),
            worktree=here.worktree,
            vcs=here.vcs if here.project != GLOBAL else None,
            time=ProjectTime(created=now_ms, updated=now_ms),
            sandboxes=[],
        )
    else:
        value = record.value()
        assert isinstance(value, Project)
        if here.project == GLOBAL or here.worktree == value.worktree or here.worktree in value.sandboxes:
            return _remember_project(access, here, [], [])
        project = replace(
            value, sandboxes=[*value.sandboxes, here.worktree], time=replace(value.time, updated=now_ms)
        )
    expect = Unchanged(scope, "project", project.id, 0 if record is None else record.seq)
    return _remember_project(access, here, [put_in(scope, project)], [expect])


def _remember_project(
    access: StoreAccess, here: Location, changes: list[Change], expect: list[Expectation]
) -> tuple[list[Change], list[Expectation]]:
    """Add the checkout's project id to the batch if the project itself is new."""
    if changes and here.checkout is not None and here.project != GLOBAL:
        entry = CheckoutProject(
            id=f"project-{_digest(here.checkout.common)}",
            key=here.checkout.common,
            etag=here.checkout.mark,
            text=here.project,
            time=Created(created=access.clock.now_ms()),
        )
        changes.append(put_in(host_scope(access.host.id), entry))
    return changes, expect


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
