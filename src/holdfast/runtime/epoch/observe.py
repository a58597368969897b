"""Looks at the world for a turn: composes the sources of its place, and observes each of them once."""

from pathlib import Path

from holdfast.context import system_context
from holdfast.context.observation import Observation
from holdfast.context.snapshot import Snapshot
from holdfast.context.sources import files
from holdfast.context.sources.standard import Around, standard
from holdfast.context.system_context import SystemContext
from holdfast.permission import visibility
from holdfast.plugins.hooks import SYSTEM_TRANSFORM, SystemSeen, SystemShown
from holdfast.provider.instructions import choose
from holdfast.runtime.engine.run import Run
from holdfast.runtime.epoch.prepared_turn import Chosen
from holdfast.schema.epoch import ContextEpoch
from holdfast.tools.registry import Registry, Toolset


async def observe(
    run: Run, chosen: Chosen, epoch: ContextEpoch | None, *, problems: list[str] | None = None
) -> Observation:
    """What every source says now; `epoch` is the one in force, None where one is about to begin.

    `problems` is filled with what sources had to say about why they could not look.
    """
    engine, around = run.engine, chosen.around
    told = Snapshot() if epoch is None else Snapshot.readable(epoch.snapshot)

    def warn(line: str) -> None:
        engine.warn(line)
        if problems is not None:
            problems.append(line)

    world = Around(
        places=around.places,
        git=around.git,
        loaded=around.loaded,
        trusted=around.trusted,
        policy=chosen.policy,
        model=chosen.model,
        tools=frozenset(shown_tools(run.tools(chosen.session), chosen)),
        clock=engine.clock,
        zone=around.loaded.config.timezone,
        http=engine.http(),
        cache=engine.cache,
        nested=() if epoch is None else tuple(Path(path) for path in epoch.nested),
        sampled=files.sampled_in(told),
        told=told,
        plugins=engine.plugins(around).sources,
        warn=warn,
    )

    def twice(key: str) -> None:
        warn(f"the context source {key} is made twice; the first one counts, and the other is left out")

    registered = [(await each.load(twice=twice)).keeping_texts() for each in engine.contexts(chosen.session)]
    return await system_context.observe(SystemContext.combine(standard(world), *registered, twice=twice))


def toolset(run: Run, chosen: Chosen) -> Toolset:
    """The tools that the agent may see, on this model."""
    registry = run.tools(chosen.session)
    return registry.materialise(without=registry.names() - shown_tools(registry, chosen))


def shown_tools(registry: Registry, chosen: Chosen) -> set[str]:
    """The names of the tools that the agent may see, on this model."""
    if not chosen.model.tool_call:
        return set()
    shown = registry.names() - visibility.hidden(registry.keys(), chosen.policy)
    return shown & choose.BRIEF_TOOLS if choose.is_brief(chosen.model) else shown


async def transformed(run: Run, chosen: Chosen, baseline: str) -> str:
    """The baseline as plugins leave it: they are asked once, when it is rendered."""
    plugins = run.engine.plugins(chosen.around)
    if not plugins.wants(SYSTEM_TRANSFORM):
        return baseline
    seen = SystemSeen(session_id=chosen.session.id, model=chosen.user.model)
    shown = await plugins.call(SYSTEM_TRANSFORM, seen, SystemShown(system=[baseline]))
    return "\n\n".join(text for text in shown.system if text.strip())
