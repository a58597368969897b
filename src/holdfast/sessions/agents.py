"""Agent runs: one task in, one answer out."""

import os
from collections.abc import Sequence

from holdfast.errors import InvalidInput
from holdfast.schema.message import MessageWithParts
from holdfast.schema.model import ModelRef
from holdfast.schema.prompt import PartInput
from holdfast.schema.session import AgentRun
from holdfast.sessions import create
from holdfast.sessions.first_prompt import first_text, process_first
from holdfast.sessions.options import PromptOptions
from holdfast.sessions.service import SessionService


class AgentService:
    """Runs agents for a caller."""

    def __init__(self, sessions: SessionService) -> None:
        self._sessions = sessions

    async def run(
        self,
        agent: str,
        input: str | Sequence[PartInput],
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
            title_=title or f"{agent}: {first_text(input) or 'a task'}",
            agent_run=AgentRun(agent=agent, prompt=prompt),
        )
        options = PromptOptions(agent=agent, model=model)
        return await process_first(self._sessions, session.id, input, options, check=check)
