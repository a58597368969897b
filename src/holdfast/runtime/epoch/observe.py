"""Observes the Context Sources for a turn: each of them once."""

from pathlib import Path

from holdfast.context import system_context
from holdfast.context.observation import Observation
from holdfast.context.snapshot import Snapshot
from holdfast.context.sources import files
from holdfast.context.sources.standard import ContextWorld, standard
from holdfast.context.system_context import SystemContext
from holdfast.permission import visibility
from holdfast.plugins.hooks import SYSTEM_TRANSFORM, SystemSeen, SystemShown
from holdfast.provider.instructions import choose
from holdfast.runtime.engine.engine import Engine, can_answer
from holdfast.runtime.engine.prepared_turn import Sampled
from holdfast.runtime.engine.run import Run
from holdfast.schema.epoch import ContextEpoch
from holdfast.tools.builtin import question
from holdfast.tools.registry import Toolset


async def observe(
    run: Run, chosen: Sampled, epoch: ContextEpoch | None, *, problems: list[str] | None = None
) -> Observation:
    """Observe every source; `epoch` is the one in force, None if one is about to begin.

    `problems` is filled with the reasons of sources that could not be read.
    """
    engine, workspace = run.engine, chosen.workspace
    snapshot = Snapshot() if epoch is None else Snapshot.readable(epoch.snapshot)

    def warn(line: str) -> None:
        engine.warn(line)
        if problems is not None:
            problems.append(line)

    world = ContextWorld(
        places=workspace.places,
        git=workspace.git,
        loaded=workspace.loaded,
        trusted=workspace.trusted,
        policy=chosen.policy,
        model=chosen.model,
        tools=frozenset(shown_tools(engine, chosen)),
        clock=engine.clock,
        zone=workspace.loaded.config.timezone,
        http=engine.http(),
        cache=engine.cache,
        nested=() if epoch is None else tuple(Path(path) for path in epoch.nested),
        sampled=files.sampled_in(snapshot),
        admitted=snapshot,
        plugins=engine.plugins(workspace).sources,
        warn=warn,
    )

    def twice(key: str) -> None:
        warn(f"the context source {key} is made twice; the first one counts, and the other is left out")

    registered = [(await each.load(twice=twice)).keeping_texts() for each in engine.contexts(chosen.session)]
    return await system_context.observe(SystemContext.combine(standard(world), *registered, twice=twice))


def toolset(engine: Engine, chosen: Sampled, *, again: bool = False) -> Toolset:
    """The tools that the agent may use on this model. `again`: to run calls that were made before."""
    registry = engine.tools(chosen.session, chosen.workspace)
    shown = shown_tools(engine, chosen, again=again)
    return registry.materialise(without=registry.names() - shown)


def shown_tools(engine: Engine, chosen: Sampled, *, again: bool = False) -> set[str]:
    """The names of the tools that the agent may use on this model."""
    if not chosen.model.tool_call:
        return set()
    registry = engine.tools(chosen.session, chosen.workspace)
    shown = registry.names() - visibility.hidden(registry.keys(), chosen.policy)
    shown -= choose.other_edits(chosen.model)
    # A question that waits is left to a process with a user, not answered by the lack of its tool.
    if not again and not can_answer(engine.presence):
        shown -= {question.NAME}
    return shown & choose.BRIEF_TOOLS if choose.is_brief(chosen.model) else shown


async def transform_baseline(run: Run, chosen: Sampled, baseline: str) -> str:
    """Let plugins change the baseline: once, when it is rendered."""
    plugins = run.engine.plugins(chosen.workspace)
    if not plugins.wants(SYSTEM_TRANSFORM):
        return baseline
    seen = SystemSeen(session_id=chosen.session.id, model=chosen.user.model)
    shown = await plugins.call(SYSTEM_TRANSFORM, seen, SystemShown(system=[baseline]))
    return "\n\n".join(text for text in shown.system if text.strip())
