"""The Context Epoch: the span in which one baseline stays what the model is given first. Each one is kept."""

from holdfast.schema.ids import SessionID
from holdfast.schema.times import Created
from holdfast.schema.wire import Count, JsonMap, Record, Wire


class EpochTime(Created, frozen=True, kw_only=True):
    """`ended` is absent while the epoch is in force."""

    ended: Count | None = None


class SentRequest(Wire, frozen=True, kw_only=True):
    """A request as the provider got it: the names of its blocks, and what could make the next one differ."""

    blocks: list[str]
    provider_id: str
    model_id: str
    agent: str
    schema: JsonMap | None = None
    """The form that was asked for, if any."""
    at: Count | None = None
    """The place of its answer among the messages; absent in a fork, where messages have other places."""


class ContextEpoch(Record, frozen=True, kw_only=True):
    """`baseline` is the exact text; `cause` why the epoch began.

    `begun` is the Context Snapshot that the baseline left, `snapshot` what was admitted since: a cut in
    between restores the one of the last system message before it, or else `begun`. `pins` holds the
    instruction texts and tool definitions, per agent and model family, that must not move while it lasts.
    `nested` are instruction files found beside what the agent read. `directory` is where the session was.
    """

    id: str
    session_id: SessionID
    baseline: str
    snapshot: JsonMap
    begun: JsonMap
    cause: str
    pins: JsonMap
    nested: list[str]
    directory: str
    reasons: tuple[str, ...] = ()
    """Why the next request may begin differently, as far as it is known by now. What is sent settles it."""
    edited_at: Count | None = None
    """Which request of the epoch, counted from 1, was the first after the user last changed or removed
    something that the model had been shown: a fork from before it begins differently."""
    sent: SentRequest | None = None
    """The last request, from the moment a user removes messages until the next one is sent: the steps that
    name its blocks may be gone."""
    lowering: Count | None = None
    """The number of the rules by which history is lowered while it lasts; absent for the first ones."""
    left: bool | None = None
    """The session has moved away: the epoch is over, even where the session came back."""
    time: EpochTime
