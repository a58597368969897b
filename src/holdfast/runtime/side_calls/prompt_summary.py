"""Summarises a prompt and its answers, beside the work: `summary.title` and `summary.body`.

Off unless `experimental.message_summary` is set: it costs two small calls a prompt. What must stay true: it
never delays or fails a turn, and it changes nothing else in the message.
"""

import contextlib
from typing import Final

import anyio
from msgspec.structs import replace

from holdfast.errors import Conflict, NotFound
from holdfast.provider.request import assemble
from holdfast.provider.request.request import Request, Text, User
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.history import model_view, transcript, work
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.runtime.side_calls import side_call
from holdfast.schema.message import MessageWithParts, UserMessage, UserSummary
from holdfast.schema.session import Session
from holdfast.store.batch import Batch, Unchanged
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put
from holdfast.workspace.workspace import Workspace

TITLE_TOKENS: Final = 20
BODY_TOKENS: Final = 200
TITLE_CHARS: Final = 100
BODY_CHARS: Final = 1_000
CONTENT_MAX: Final = 8_000
KEY: Final = "summary"


async def write(engine: Engine, session: str) -> None:
    """Summarise the newest prompt and its answers, if the user's settings want it and it has no summary."""
    try:
        with anyio.move_on_after(side_call.WAIT_S):
            await _write(engine, session)
    except Exception:  # noqa: BLE001 - it runs beside the drains, and a bug here must not end them
        return


async def _write(engine: Engine, id: str) -> None:
    record = await engine.store.session(id)
    if record is None:
        return
    session = record.value()
    workspace = await engine.workspace(session)
    wanted = workspace.loaded.config.experimental
    if wanted is None or not wanted.message_summary:
        return
    history = model_view.conversation(await SessionHistory(engine.store, id).read())
    newest = work.newest_user(history)
    if newest is None or not isinstance(newest.info, UserMessage) or work.owes_answer(history):
        return
    if newest.info.summary is not None and newest.info.summary.title is not None:
        return
    content = work.prompt_text(newest)
    if not content:
        return
    answers = history[history.index(newest) :]
    whole = "\n\n".join(transcript.pieces(answers))
    user = newest.info
    title = await _ask(
        engine, workspace, session, user=user, agent_name="title", content=content, tokens_max=TITLE_TOKENS
    )
    body = await _ask(
        engine, workspace, session, user=user, agent_name="summary", content=whole, tokens_max=BODY_TOKENS
    )
    if title or body:
        await _store(engine, newest, side_call.first_line(title, TITLE_CHARS), body[:BODY_CHARS])


async def _ask(
    engine: Engine,
    workspace: Workspace,
    session: Session,
    *,
    user: UserMessage,
    agent_name: str,
    content: str,
    tokens_max: int,
) -> str:
    try:
        agent = workspace.agents.get(agent_name)
    except NotFound:
        return ""  # The user disabled the agent.
    main = workspace.providers.model(user.model.provider_id, user.model.model_id)
    model = side_call.model_of(agent, workspace, main)
    request: Request = assemble.assemble(
        model,
        system=(agent.prompt,) if agent.prompt else (),
        messages=(User(content=(Text(text=transcript.shortened(content, CONTENT_MAX)),)),),
        agent=agent,
        output_tokens_max=tokens_max,
        session=session.id,
    )
    return await side_call.ask(engine, workspace, session, request, f"{KEY}:{agent_name}")


async def _store(engine: Engine, message: MessageWithParts, title: str, body: str) -> None:
    async def once() -> None:
        record = await engine.store.get(message.info.session_id, "message", message.info.id)
        info = None if record is None else record.value()
        if record is None or not isinstance(info, UserMessage):
            return
        known = info.summary or UserSummary(diffs=[])
        made = replace(info, summary=replace(known, title=title or None, body=body or None))
        unchanged = Unchanged(info.session_id, "message", info.id, record.seq)
        await engine.store.commit(Batch((put(made),), (unchanged,)))

    with contextlib.suppress(Conflict):
        await on_conflict(once)
