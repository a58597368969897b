"""Records of a project or a host: saved approvals, trust in folders, the project of a checkout."""

from holdfast.schema.ids import ApprovalID, ProjectID
from holdfast.schema.times import Created
from holdfast.schema.wire import Record


class Approval(Record, frozen=True, kw_only=True):
    """A saved "always": it turns ask into allow, and nothing else, for one project in one worktree.

    `worktree` is the path of the checkout: the same project elsewhere is asked again.
    """

    id: ApprovalID
    project_id: ProjectID
    worktree: str
    permission: str
    pattern: str
    time: Created


class Trust(Record, frozen=True, kw_only=True):
    """`path` is the real path, links resolved. A refusal is remembered as well: `granted` is then false.

    `pins` is what the folder was trusted as: for each place in it (`.` is itself) the files that steer the
    agent, each with the SHA-256 of its bytes, or `-> ` and the target of a link that leads out.
    """

    id: str
    host: str
    path: str
    granted: bool
    pins: dict[str, dict[str, str]] | None = None
    time: Created


class CheckoutProject(Record, frozen=True, kw_only=True):
    """The project id of a checkout: `key` is its common git directory, `etag` its mark, `text` the id."""

    id: str
    key: str
    etag: str | None = None
    text: str
    time: Created
