"""The Safe Provider-Turn Boundary: everything that is fixed right before a provider call.

In this order: prompts are promoted; the history is read; agent and model are sampled, once, from the latest
prompt; tools are materialised under the agent's policy. (The Context Epoch is begun before the promotion and
reconciled after it: that is part 4's, and its place is marked.)
"""

import msgspec

from holdfast.errors import NotFound
from holdfast.permission import visibility
from holdfast.permission.policy import Policy
from holdfast.provider.catalog.model import Model
from holdfast.provider.instructions import choose
from holdfast.runtime import inbox, plan
from holdfast.runtime.room import Engine
from holdfast.runtime.run import Run
from holdfast.runtime.surroundings import Surroundings
from holdfast.schema.agent import Agent
from holdfast.schema.message import UserMessage
from holdfast.schema.message_with_parts import MessageWithParts
from holdfast.schema.output_format import JsonSchemaFormat
from holdfast.schema.rule import Rule
from holdfast.schema.session import Session
from holdfast.tools import structured
from holdfast.tools.registry import Toolset

DEPTH_MAX = 32


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """All that one turn needs, fixed."""

    session: Session
    around: Surroundings
    user: UserMessage
    agent: Agent
    model: Model
    variant: str | None
    system: tuple[str, ...]
    history: list[MessageWithParts]
    toolset: Toolset
    policy: Policy
    last_step: bool


async def cross(run: Run) -> Ready | None:
    """Promote what waits, and fix the turn; None when there is nothing to say."""
    engine, id = run.engine, run.recorder.session
    everything = await run.history.read()
    # In this order: a prompt that comes in between waits for the next boundary, and is not yet shown.
    shown = {message.info.id for message in everything}
    waiting = [each for each in await inbox.pending(engine, id) if each.prompt.id in shown]
    unheard = {each.prompt.id for each in waiting}
    history = [message for message in everything if message.info.id not in unheard]
    owed = plan.owes_answer(history)
    promoted = inbox.next_to_promote(waiting, idle=not owed)
    if promoted:
        chosen = {each.prompt.id for each in promoted}
        joining = [message for message in everything if message.info.id in chosen]
        await inbox.promote(engine, run.recorder, promoted, [message.info for message in joining])
        history += joining  # Their new place is behind everything that was said.
        # What wants no reply does not end the work that it joins.
        owed = owed or not all(each.prompt.no_reply for each in promoted)
    newest = plan.newest_user(history)
    if not owed or newest is None:
        return None
    assert isinstance(newest.info, UserMessage)
    return await sampled(run, newest.info, history)


async def sampled(run: Run, user: UserMessage, history: list[MessageWithParts]) -> Ready:
    """Agent, model, tools and policy of a prompt, fixed for a turn."""
    session = await run.session()
    around = await run.engine.around(session)
    agent = around.agents.get(user.agent)
    model = around.providers.model(user.model.provider_id, user.model.model_id)
    policy = await policy_of(run.engine, session, around, agent)
    registry = run.tools(session)
    form = user.format if isinstance(user.format, JsonSchemaFormat) else None
    hidden = visibility.hidden(registry.names(), policy.rules, policy.restrictions)
    if choose.is_brief(model):
        hidden |= registry.names() - choose.BRIEF_TOOLS
    without = registry.names() if not model.tool_call else hidden
    return Ready(
        session=session,
        around=around,
        user=user,
        agent=agent,
        model=model,
        variant=user.model.variant,
        system=choose.system_blocks(model, agent),
        history=history,
        toolset=_toolset(registry.materialise(without=without), form),
        policy=policy,
        last_step=agent.steps is not None and plan.steps_since_prompt(history) + 1 >= agent.steps,
    )


def _toolset(shown: Toolset, form: JsonSchemaFormat | None) -> Toolset:
    return shown if form is None else shown.plus(structured.structured_tool(form.schema))


async def policy_of(
    engine: Engine, session: Session, around: Surroundings, agent: Agent, *, depth: int = DEPTH_MAX
) -> Policy:
    """What the session may do: never more than the session above it."""
    above = None
    if session.parent_id is not None and depth == 0:
        above = Policy((Rule(permission="*", pattern="*", action="deny"),))  # Too deep to be looked at whole.
    elif session.parent_id is not None:
        record = await engine.store.session(session.parent_id)
        if record is not None:
            parent = record.value()
            there = await engine.around(parent)
            above = await policy_of(engine, parent, there, agent_of(parent, there), depth=depth - 1)
    return Policy(
        rules=(*agent.permission, *(session.permission or ())),
        restrictions=around.agents.restrictions(agent.name),
        above=above,
    )


def agent_of(session: Session, around: Surroundings) -> Agent:
    """The agent of a session; the default one when it names none, or one that is gone."""
    try:
        return around.agents.get(session.agent or around.agents.default)
    except NotFound:
        return around.agents.get(around.agents.default)
