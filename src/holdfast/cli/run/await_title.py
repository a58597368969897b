"""Waits a moment for the title of a new session: a short answer is over before its name has come.

The end of the process would cancel it. Everything is on the screen by then, and the wait has a bound.
"""

from typing import TYPE_CHECKING

import anyio

from holdfast.cli.run.interrupts import Interrupts
from holdfast.runtime.side_calls.session_title import AGENT
from holdfast.workspace.workspace import Workspace

if TYPE_CHECKING:
    from holdfast.app import Holdfast

TITLE_S = 3.0


async def await_title(hf: "Holdfast", session: str, workspace: Workspace, interrupts: Interrupts) -> None:
    """Return when the session has a title, when it gets none, or when the user interrupts."""
    if all(agent.name != AGENT for agent in workspace.agents.all):
        return  # The user has switched it off.
    with anyio.move_on_after(TITLE_S):
        async with anyio.create_task_group() as group:

            async def impatient() -> None:
                await interrupts.asked.wait()
                group.cancel_scope.cancel()

            group.start_soon(impatient)
            await hf.sessions.titled(session)
            group.cancel_scope.cancel()
