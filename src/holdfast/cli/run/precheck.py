"""Finds what stands in the way of a first prompt before a session is made for it: a mistake leaves none."""

from holdfast.runtime.inbox import choice
from holdfast.runtime.inbox.choice import Wish
from holdfast.schema.ids import ProjectID, SessionID
from holdfast.schema.session import Session, SessionTime
from holdfast.workspace.workspace import Workspace

BLANK = Session(
    id=SessionID(""),
    slug="",
    project_id=ProjectID(""),
    directory="",
    title="",
    version="",
    time=SessionTime(created=0, updated=0),
)
"""A session that has chosen nothing yet."""


def check(workspace: Workspace, wish: Wish) -> None:
    """Raise what a new session would meet: an agent, model or variant that is not there, a missing key."""
    chosen = choice.choose(wish, BLANK, workspace).model
    workspace.providers.endpoint(workspace.providers.model(chosen.provider_id, chosen.model_id))
