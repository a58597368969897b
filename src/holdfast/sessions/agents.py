"""Agent runs: one task in, one answer out."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.schema.message import MessageWithParts
from holdfast.schema.model import ModelRef
from holdfast.schema.session import AgentRun
from holdfast.sessions import create
from holdfast.sessions.service import SessionService

if TYPE_CHECKING:
    from holdfast.schema.prompt import PartInput

_TITLE_CHARS = 60


class AgentService:
    """Runs agents for a caller."""

    def __init__(self, sessions: SessionService) -> None:
        self._sessions = sessions

    async def run(
        self,
        agent: str,
        input: "str | Sequence[PartInput]",
        *,
        prompt: str | None = None,
        parent: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        model: str | ModelRef | None = None,
        title: str | None = None,
        check: bool = True,
    ) -> MessageWithParts:
        """Give any agent a task in a session of its own, and wait for its last answer.

        `prompt` replaces the agent's own text for this run. The session is a child of `parent`, if given.
        Lists show it only with `agent_runs`, and it is removed when it was not used for a week;
        `sessions.restore` keeps it. `AnswerFailed` if the answer ended with an error, but for `check=False`.
        """
        if prompt is not None and not prompt.strip():
            raise InvalidInput("the prompt of an agent is empty; leave it out to use the agent's own text")
        session = await create.create(
            self._sessions.access,
            directory=directory,
            parent=parent,
            title_=title or f"{agent}: {_first_text(input)[:_TITLE_CHARS]}",
            agent_run=AgentRun(agent=agent, prompt=prompt),
        )
        try:
            admitted = await self._sessions.prompt(session.id, input, agent=agent, model=model, resume=False)
        except HoldfastError:
            # The prompt was refused: the session is empty, and no caller knows its id.
            await self._sessions.remove(session.id)
            raise
        id = admitted.prompt.id
        return await self._sessions.process(session.id, input, id=id, agent=agent, model=model, check=check)


def _first_text(input: "str | Sequence[PartInput]") -> str:
    """The first text of a task, for its title."""
    if isinstance(input, str):
        return input
    return next((text for part in input if isinstance(text := getattr(part, "text", None), str)), "a task")
