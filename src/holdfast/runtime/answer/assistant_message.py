"""Makes assistant messages: an answer that begins, a summary, and an answer that never began. Pure."""

from msgspec.structs import replace

from holdfast.provider.catalog.model import Model
from holdfast.runtime.engine.prepared_turn import PreparedTurn
from holdfast.schema import usage
from holdfast.schema.ids import MessageID
from holdfast.schema.message import AssistantMessage, AssistantPath, AssistantTime, UserMessage


def begun(turn: PreparedTurn, id: MessageID, now_ms: int) -> AssistantMessage:
    """The answer of a turn, before anything is sent."""
    made = _made(id, turn.user, turn.agent.name, now_ms)
    return replace(
        made,
        model_id=turn.model.id,
        provider_id=turn.model.provider_id,
        path=_path(turn),
        variant=turn.variant,
    )


def summary(
    turn: PreparedTurn, asked: UserMessage, id: MessageID, now_ms: int, *, model: Model, agent: str
) -> AssistantMessage:
    """The message that a compaction will write its summary to."""
    made = _made(id, asked, agent, now_ms)
    return replace(made, model_id=model.id, provider_id=model.provider_id, path=_path(turn), summary=True)


def unanswered(user: UserMessage, id: MessageID, now_ms: int) -> AssistantMessage:
    """An answer that never began, to a prompt that chose no more than its agent and model."""
    return _made(id, user, user.agent, now_ms)


def _made(id: MessageID, user: UserMessage, agent: str, now_ms: int) -> AssistantMessage:
    return AssistantMessage(
        id=id,
        session_id=user.session_id,
        time=AssistantTime(created=now_ms),
        parent_id=user.id,
        model_id=user.model.model_id,
        provider_id=user.model.provider_id,
        mode=agent,
        agent=agent,
        path=AssistantPath(cwd="", root=""),
        cost=0,
        tokens=usage.ZERO,
    )


def _path(turn: PreparedTurn) -> AssistantPath:
    return AssistantPath(cwd=turn.session.directory, root=str(turn.workspace.places.worktree))
