"""Gives a session a title after its first prompt, beside the work: a small model, once, within a bound.

What must stay true: it never delays or fails a turn; a title that the user gave is never replaced.
"""

import contextlib
from collections.abc import Callable

import anyio
from msgspec.structs import replace

from holdfast.errors import Conflict, NotFound
from holdfast.provider.catalog.model import Model
from holdfast.provider.request import assemble
from holdfast.provider.request.request import Request, Text, User
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.side_calls import side_call
from holdfast.schema import title
from holdfast.schema.agent import Agent
from holdfast.schema.message import UserMessage
from holdfast.schema.part import SubtaskPart, TextPart
from holdfast.store.batch import Batch, Unchanged
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put
from holdfast.store.query import MessageQuery

AGENT = "title"
CONTENT_MAX = 4_000
TITLE_MAX = 100
SETTLED_MAX = 10_000
_TOKENS_MAX = 500
_ASK = "Write a title for a conversation that begins with this message:\n\n"


class Titles:
    """Gives titles, each in a task started with `begin`, beside the drain of its session."""

    def __init__(self, engine: Engine, begin: Callable[..., None]) -> None:
        self._engine = engine
        self._begin = begin
        self._under_way: dict[str, anyio.Event] = {}
        self._settled: dict[str, None] = {}
        """Sessions that need no look any more: a title is made of the first prompt."""

    def look(self, session: str) -> None:
        """Start to give the session a title, unless it is settled that it gets none."""
        if session not in self._settled:
            self._under_way[session] = anyio.Event()
            self._begin(self._give_title, session, self._under_way[session])

    async def wait(self, session: str) -> None:
        """Return when this process no longer tries to give the session a title."""
        if (done := self._under_way.get(session)) is not None:
            await done.wait()

    async def _give_title(self, session: str, done: anyio.Event) -> None:
        try:
            if await name(self._engine, session):
                self._settled[session] = None
                if len(self._settled) > SETTLED_MAX:
                    del self._settled[next(iter(self._settled))]
        finally:
            done.set()
            if self._under_way.get(session) is done:
                del self._under_way[session]


async def name(engine: Engine, session: str) -> bool:
    """Give the session a title if it has none and one prompt. True when no further try is needed."""
    try:
        with anyio.move_on_after(side_call.WAIT_S):
            return await _name(engine, session)
    except Exception:  # noqa: BLE001 - it runs beside the drains, and a bug here must not end them
        return False  # The default title stays; a later wake tries again.
    return False


async def _name(engine: Engine, id: str) -> bool:
    record = await engine.store.session(id)
    session = None if record is None else record.value()
    if session is None or session.parent_id is not None or not title.is_default(session.title):
        return True
    content, prompt = await _first_prompt(engine, id)
    if not content or prompt is None:
        return False
    workspace = await engine.workspace(session)
    try:
        agent = workspace.agents.get(AGENT)
    except NotFound:
        return False  # The user disabled the agent, and may enable it again.
    main = workspace.providers.model(prompt.model.provider_id, prompt.model.model_id)
    model = side_call.model_of(agent, workspace, main)
    request = _request(agent, model, content, id)
    made = side_call.first_line(await side_call.ask(engine, workspace, session, request, AGENT), TITLE_MAX)
    if made:
        await _write(engine, id, made)
    return bool(made)


async def _first_prompt(engine: Engine, session: str) -> tuple[str, UserMessage | None]:
    """The text of the first prompt, if it is the only one so far."""
    page = await engine.store.messages(MessageQuery(session, limit=10, system=False))
    found: list[tuple[str, UserMessage]] = []
    for message in page.messages:
        info = message.info.value()
        parts = [part.value() for part in message.parts] if isinstance(info, UserMessage) else []
        texts = [part.text for part in parts if isinstance(part, TextPart) and not part.synthetic]
        texts += [part.prompt for part in parts if isinstance(part, SubtaskPart)]
        if texts and isinstance(info, UserMessage):
            found.append(("\n".join(texts), info))
    return found[0] if len(found) == 1 and page.older is None else ("", None)


def _request(agent: Agent, model: Model, content: str, session: str) -> Request:
    return assemble.assemble(
        model,
        system=(agent.prompt,) if agent.prompt else (),
        messages=(User(content=(Text(text=_ASK + content[:CONTENT_MAX]),)),),
        agent=agent,
        output_tokens_max=_TOKENS_MAX,
        session=session,
    )


async def _write(engine: Engine, id: str, made: str) -> None:
    async def once() -> None:
        record = await engine.store.session(id)
        if record is None or not title.is_default((session := record.value()).title):
            return
        unchanged = Unchanged(id, "session", id, record.seq)
        await engine.store.commit(Batch((put(replace(session, title=made)),), (unchanged,)))

    with contextlib.suppress(Conflict):
        await on_conflict(once)
