"""All sources of a turn, composed in one order: what changes least comes first, so that sessions of one
project share the beginning of their baselines.
"""

import sys
from pathlib import Path
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.config.load import Trusted
from holdfast.config.loaded import Loaded
from holdfast.config.places import Places
from holdfast.context.snapshot import Snapshot
from holdfast.context.source import ContextSource
from holdfast.context.sources import references as references_
from holdfast.context.sources import skills as skills_
from holdfast.context.sources.date import date
from holdfast.context.sources.environment import environment
from holdfast.context.sources.files import FileSample, files
from holdfast.context.sources.instructions import instructions
from holdfast.context.sources.look import Warn
from holdfast.context.sources.model import model
from holdfast.context.sources.nested_instructions import nested
from holdfast.context.sources.plugin import guarded
from holdfast.context.sources.references import references
from holdfast.context.sources.remote_instructions import Fetching, remote_instructions, texts_in
from holdfast.context.sources.skills import skills
from holdfast.context.system_context import SystemContext
from holdfast.net.last_good import LastGood
from holdfast.net.stream import Http
from holdfast.permission.policy import Policy
from holdfast.provider.catalog.model import Model

SKILL_TOOL = "skill"


class ContextWorld(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the sources of a turn look at."""

    places: Places
    git: bool
    loaded: Loaded
    trusted: Trusted
    policy: Policy
    """What the agent of the turn may do: skills that it denies are not listed."""
    model: Model
    tools: frozenset[str]
    """The tools that the model is shown; skills are listed only where one of them can load them."""
    clock: Clock
    zone: str | None = None
    http: Http
    cache: Path
    """The folder for copies of what was fetched."""
    nested: tuple[Path, ...] = ()
    """Instruction files that were met beside files which were read, the first met first."""
    sampled: FileSample | None = None
    """The files that the epoch holds."""
    admitted: Snapshot = Snapshot()
    """What the model was given in the epoch in force."""
    plugins: tuple[ContextSource[Any], ...] = ()
    warn: Warn


def standard(around: ContextWorld) -> SystemContext:
    """The System Context of a turn."""
    foreign = {source.key for source in around.plugins}
    made = ((source.key, SystemContext.make(source)) for source in sources(around))
    return SystemContext.combine(*(one.keeping_texts() if key in foreign else one for key, one in made))


def sources(around: ContextWorld) -> list[ContextSource[Any]]:
    """The sources in their order."""
    where, warn = around.places, around.warn
    urls = [each.entry for each in around.loaded.instructions if each.is_url and not each.contained]
    fetching = Fetching(around.http, LastGood(around.cache / "instructions"), around.clock, warn)
    found: list[ContextSource[Any]] = [
        environment(
            directory=where.directory, worktree=where.worktree, git=around.git, platform=sys.platform
        ),
        instructions(where, around.loaded.instructions, trusted=around.trusted, warn=warn),
    ]
    if urls:
        found.append(remote_instructions(urls, fetching, before=texts_in(around.admitted, urls)))
    if SKILL_TOOL in around.tools:
        find = skills_.finder(where, around.loaded, around.trusted)
        found.append(skills(find, allowed=lambda name: _is_permitted(name, around.policy), warn=warn))
    if around.loaded.config.references:
        found.append(references(references_.finder(where, around.loaded), warn=warn))
    if not around.model.tool_call:
        found.append(files(where.worktree, sampled=around.sampled, warn=warn))
    found += nested(around.nested, worktree=where.worktree, warn=warn)
    found += [
        guarded(source, was_admitted=source.key in around.admitted, warn=warn)
        for source in sorted(around.plugins, key=lambda each: each.key)
    ]
    answers = around.model
    found.append(model(provider=answers.provider_id, id=answers.id, name=answers.name))
    found.append(date(around.clock, zone=around.zone, warn=warn))
    return found


def _is_permitted(name: str, policy: Policy) -> bool:
    return policy.verdict(SKILL_TOOL, name) != "deny"
