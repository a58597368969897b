"""The session record: what a list shows of a conversation. Its messages, parts and the rest are records of
their own.

Whether a session is busy is not here: that is derived from who has claimed it.
"""

from holdfast.schema.budget import Budget, Spent
from holdfast.schema.ids import MessageID, PartID, ProjectID, SessionID, WorkspaceID
from holdfast.schema.model import SessionModel
from holdfast.schema.permission import Rule
from holdfast.schema.session_lists import DiffStatus, FileDiff
from holdfast.schema.times import Created
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import Count, JsonMap, Num, Record, Wire

FORK = "fork"
"""In a session's metadata: what it is a fork of."""
SOURCES = "sources"
"""In there: what that one is a fork of in turn, the nearest first; they may be gone."""
CEILINGS = "ceilings"
"""In there: the rules of the sessions above that one, which hold for the fork too."""


class SessionSummary(Wire, frozen=True, kw_only=True):
    """What the whole session changed in files."""

    additions: Num
    deletions: Num
    files: Num
    diffs: list[FileDiff] | None = None


class SessionShare(Wire, frozen=True, kw_only=True):
    """Where the session can be read by others."""

    url: str


class SessionTime(Wire, frozen=True, kw_only=True):
    """`archived` is any finite number on the wire, even a negative one."""

    created: Count
    updated: Count
    compacting: Count | None = None
    archived: Num | None = None


class RevertFile(Wire, frozen=True, kw_only=True):
    """One file that a staged revert puts back; `path` is relative to the worktree."""

    path: str
    status: DiffStatus
    additions: Num
    deletions: Num
    patch: str


class Revert(Wire, frozen=True, kw_only=True):
    """A revert that is staged and can still be undone: everything from the message (or part) on is to go.

    The last three are ours. `kept` and `writes` are ids, in the shadow repository, of lists of `FileChange`.
    `kept` says what each file held before the revert and holds since. `writes` is there until the files are
    written: a revert that has it was cut off, and is finished from it. `leaving`: an `unrevert` was.
    """

    message_id: MessageID
    part_id: PartID | None = None
    snapshot: str | None = None
    diff: str | None = None
    files: list[RevertFile] | None = None
    kept: str | None = None
    writes: str | None = None
    leaving: bool | None = None


class CommittedRevert(Wire, frozen=True, kw_only=True):
    """A revert whose messages are gone. Its files can be put back as long as `kept` is."""

    message_id: MessageID
    kept: str
    time: Created


class AgentRun(Wire, frozen=True, kw_only=True):
    """What a session was made for: one run of one agent, asked for by a program and not by a user."""

    agent: str
    prompt: str | None = None
    """Takes the place of the agent's own text in this session."""


class Session(Record, frozen=True, kw_only=True):
    """One conversation. `placement` is ours: an opaque name for who can reach its directory.

    `budget` and `spent` are ours too; the root of a tree keeps them for all of it. So is `agent_run`: lists
    leave such a session out unless they are asked for it, and it is pruned when it has not been used for a
    week. `reverted` holds the last reverts that were committed, the oldest first.
    """

    id: SessionID
    slug: str
    project_id: ProjectID
    workspace_id: WorkspaceID | None = None
    directory: str
    path: str | None = None
    parent_id: SessionID | None = None
    summary: SessionSummary | None = None
    cost: Num | None = None
    tokens: Tokens | None = None
    share: SessionShare | None = None
    title: str
    agent: str | None = None
    model: SessionModel | None = None
    version: str
    metadata: JsonMap | None = None
    time: SessionTime
    permission: list[Rule] | None = None
    revert: Revert | None = None
    placement: str | None = None
    budget: Budget | None = None
    spent: Spent | None = None
    agent_run: AgentRun | None = None
    reverted: list[CommittedRevert] | None = None
