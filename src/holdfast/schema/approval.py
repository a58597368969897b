"""A saved "always": it turns ask into allow, and nothing else, for one project in one worktree."""

from holdfast.schema.ids import ApprovalID, ProjectID
from holdfast.schema.times import Created
from holdfast.schema.wire import Record


class Approval(Record, frozen=True, kw_only=True):
    """`worktree` is the path of the checkout: the same project elsewhere is asked again."""

    id: ApprovalID
    project_id: ProjectID
    worktree: str
    permission: str
    pattern: str
    time: Created
