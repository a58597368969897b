"""Agents as a caller uses them: one question, one answer."""

import os

from holdfast.errors import HoldfastError
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.sessions.service import SessionService


class AgentService:
    """What a caller may ask of agents."""

    def __init__(self, sessions: SessionService) -> None:
        self._sessions = sessions

    async def run(
        self,
        agent: str,
        input: str,
        *,
        directory: str | os.PathLike[str] | None = None,
        model: str | None = None,
        title: str | None = None,
    ) -> MessageWithParts:
        """Give an agent a task in a session of its own, and wait for its last answer."""
        session = await self._sessions.create(directory=directory, title=title or f"{agent}: {input[:60]}")
        try:
            admitted = await self._sessions.prompt(session.id, input, agent=agent, model=model, resume=False)
        except HoldfastError:
            await self._sessions.remove(session.id)  # Nothing was said in it, and nobody knows of it.
            raise
        id = admitted.prompt.id
        return await self._sessions.process(session.id, input, id=id, agent=agent, model=model)
