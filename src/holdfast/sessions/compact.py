"""Compaction at the user's request: admits a prompt for it, unless none is needed."""

from typing import Literal

from holdfast.errors import InvalidInput, NotFound
from holdfast.provider.request import prefix
from holdfast.runtime.compaction import fit
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.history import model_view, work
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.runtime.inbox import admission
from holdfast.runtime.inbox.admission import Prompt
from holdfast.runtime.preview import preview
from holdfast.schema.message import UserMessage
from holdfast.schema.prompt import CompactionPartInput
from holdfast.schema.session import Session

Answer = Literal["admitted", "not needed"]


async def request_compaction(engine: Engine, session: str, *, force: bool) -> Answer:
    """Admit a request to compact. Without `force` only if the next request is over a threshold."""
    record = await engine.store.session(session)
    if record is None:
        raise NotFound(f"session {session[:60]} does not exist")
    history = await SessionHistory(engine.store, session).read()
    newest = work.newest_user(model_view.conversation(history))
    if newest is None and not force:
        return "not needed"
    if newest is None:
        raise InvalidInput(f"session {session} has nothing to compact: nothing was said since its beginning")
    assert isinstance(newest.info, UserMessage)
    if not force and not await _is_needed(engine, record.value()):
        return "not needed"
    user = newest.info
    prompt = Prompt(
        parts=[CompactionPartInput()], agent=user.agent, model=user.model, variant=user.model.variant
    )
    await admission.admit(engine, session, prompt)
    return "admitted"


async def _is_needed(engine: Engine, session: Session) -> bool:
    """Whether the next request is over a threshold, measured as right before a turn."""
    next_ = await preview(engine, session)
    if next_ is None:
        return False
    return fit.called_for(next_.turn, prefix.named(next_.request).characters) is not None
