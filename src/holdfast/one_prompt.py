"""One prompt, one answer: opens the store, asks, closes everything.

What must stay true: both functions have the same arguments; whatever happens, nothing that they opened stays
open.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast import app
from holdfast.errors import InvalidInput, Refused
from holdfast.schema.message import MessageWithParts
from holdfast.schema.model import ModelRef
from holdfast.schema.output_format import OutputFormat
from holdfast.schema.permission import Rule
from holdfast.schema.prompt import PartInput
from holdfast.sessions.first_prompt import first_text, process_first
from holdfast.sessions.options import PromptOptions

if TYPE_CHECKING:
    from holdfast.provider.port import Provider
    from holdfast.runtime.engine.engine import OnAsk
    from holdfast.toolkit.declare import Tool


async def run(
    prompt: str | Sequence[PartInput],
    *,
    model: str | ModelRef | None = None,
    agent: str | None = None,
    variant: str | None = None,
    system: str | None = None,
    format: OutputFormat | None = None,
    tools: "Sequence[Tool]" = (),
    permission: Sequence[Rule] | None = None,
    directory: str | os.PathLike[str] | None = None,
    session: str | None = None,
    title: str | None = None,
    store: str | None = None,
    on_ask: "OnAsk | None" = None,
    provider: "Provider | None" = None,
    check: bool = True,
) -> MessageWithParts:
    """Send one prompt to a new session, wait for its answer, and close everything.

    Without `directory` it works in the current one; with `session`, that session goes on, and none is made.
    `tools` are offered beside the built-in ones, `permission` holds the rules of a new session. The settings
    are those of the user, and so is the store unless `store` names another; `answer.info.session_id` leads
    back to the session. `AnswerFailed` if the answer ended with an error, unless `check` is False.
    """
    if session is not None and (directory, permission, title) != (None, None, None):
        raise InvalidInput("a session that goes on has a directory, permissions and a title; name no others")
    options = PromptOptions(model=model, agent=agent, variant=variant, system=system, format=format)
    async with app.open(store, on_ask=on_ask, provider=provider) as hf:
        for tool in tools:
            hf.tools.register(tool)
        if session is not None:
            return await hf.sessions.process(
                session,
                prompt,
                model=model,
                agent=agent,
                variant=variant,
                system=system,
                format=format,
                check=check,
            )
        # Its first words are the title: the model is not asked for one that the end would cut off.
        title = title or first_text(prompt).strip() or "A prompt"
        new = await hf.sessions.create(directory=directory, title=title, permission=permission)
        return await process_first(hf.sessions, new.id, prompt, options, check=check)


def run_sync(
    prompt: str | Sequence[PartInput],
    *,
    model: str | ModelRef | None = None,
    agent: str | None = None,
    variant: str | None = None,
    system: str | None = None,
    format: OutputFormat | None = None,
    tools: "Sequence[Tool]" = (),
    permission: Sequence[Rule] | None = None,
    directory: str | os.PathLike[str] | None = None,
    session: str | None = None,
    title: str | None = None,
    store: str | None = None,
    on_ask: "OnAsk | None" = None,
    provider: "Provider | None" = None,
    check: bool = True,
) -> MessageWithParts:
    """`run` for programs without an event loop; `Refused` inside of one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise Refused(
            "run_sync was called inside a running event loop, which it would block; await run instead"
        )
    return asyncio.run(
        run(
            prompt,
            model=model,
            agent=agent,
            variant=variant,
            system=system,
            format=format,
            tools=tools,
            permission=permission,
            directory=directory,
            session=session,
            title=title,
            store=store,
            on_ask=on_ask,
            provider=provider,
            check=check,
        )
    )
