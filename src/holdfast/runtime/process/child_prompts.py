"""Admits a tool's prompt to a child of the tool's session.

What must stay true: a tool reaches only descendants of its session, which are bound by its ceiling; the
prompt is durable before the tool continues, so a lost wake costs nothing but time.
"""

import contextlib
from collections.abc import Awaitable, Callable

from holdfast.errors import NotFound, Refused
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.inbox import admission
from holdfast.runtime.inbox.admission import Prompt
from holdfast.schema.prompt import TextPartInput


class ChildPrompts:
    """Fills `toolkit.context.Admit`."""

    def __init__(self, engine: Engine, wake: Callable[[str], Awaitable[None]]) -> None:
        self._engine = engine
        self._wake = wake

    async def __call__(
        self, above: str, session: str, text: str, *, id: str | None, agent: str | None
    ) -> str:
        record = await self._engine.store.session(session)
        if record is None:
            raise NotFound(f"session {session[:60]} does not exist")
        if record.value().parent_id != above:
            raise Refused(f"session {session} is no child of {above}, and a tool prompts only children")
        prompt = Prompt(parts=[TextPartInput(text=text)], id=id, agent=agent)
        admitted = await admission.admit(self._engine, session, prompt)
        # This process closes: the next that opens the store finds the prompt.
        with contextlib.suppress(Refused):
            await self._wake(session)
        return admitted.prompt.id
