"""A session for tests of what is computed from one."""

from holdfast.schema.ids import ProjectID, SessionID
from holdfast.schema.session import Session, SessionTime

SESSION = Session(
    id=SessionID("ses_1"),
    slug="s",
    project_id=ProjectID("p"),
    directory="/w",
    title="T",
    version="1",
    time=SessionTime(created=1, updated=1),
)
