"""The agents of a directory: built-in ones, changed or joined by those of the settings.

What must stay true: an agent of an untrusted source (a folder without trust, a host) is never the
default, and its own rules only tighten; they stand in `restrictions`, not among its permissions.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.config import builtin_agents
from holdfast.config.builtin_agents import AgentPlaces
from holdfast.config.loaded import Loaded
from holdfast.errors import InvalidInput, NotFound
from holdfast.permission import from_config
from holdfast.schema.agent import Agent
from holdfast.schema.config import AgentConfig
from holdfast.schema.model import ModelRef
from holdfast.schema.permission import Rule, Ruleset


class Agents(msgspec.Struct, frozen=True):
    """Every agent, the default one first and then by name."""

    all: tuple[Agent, ...]
    default: str
    _restrictions: tuple[Ruleset, ...] = ()
    _own_restrictions: dict[str, Ruleset] = {}

    def get(self, name: str) -> Agent:
        """The agent of that name, or `NotFound`."""
        for agent in self.all:
            if agent.name == name:
                return agent
        names = ", ".join(agent.name for agent in self.all if not agent.hidden)
        raise NotFound(f"there is no agent {name[:60]!r}; there are {names}")

    def restrictions(self, name: str) -> tuple[Ruleset, ...]:
        """Rulesets that may only tighten what the agent may do (`permission.evaluate.restricted`)."""
        own = self._own_restrictions.get(name)
        return self._restrictions if own is None else (*self._restrictions, own)


def agents(loaded: Loaded, places: AgentPlaces) -> Agents:
    """The agents that the settings make."""
    home = str(places.home)
    user = from_config.rules(loaded.config.permission, home)
    found = {
        name: replace(agent, permission=[*agent.permission, *user])
        for name, agent in builtin_agents.builtin(places).items()
    }
    new = [*builtin_agents.defaults(places), *user]
    for key, config in (loaded.config.agent or {}).items():
        if config.disable:
            found.pop(key, None)
            continue
        base = found.get(key) or Agent(name=key, mode="all", native=False, permission=new, options={})
        found[key] = _changed(base, config, loaded, key, home)
    kept = {name: _with_tool_output(agent, places) for name, agent in found.items()}
    default = _default(kept, loaded)
    ordered = sorted(kept.values(), key=lambda agent: (agent.name != default, agent.name))
    return Agents(tuple(ordered), default, loaded.restrictions, loaded.agent_restrictions)


def _changed(base: Agent, config: AgentConfig, loaded: Loaded, key: str, home: str) -> Agent:
    given: dict[str, Any] = {
        name: getattr(config, name)
        for name in ("name", "description", "mode", "variant", "temperature", "top_p", "steps", "prompt")
    }
    given |= {"color": config.color, "hidden": config.hidden}
    if config.model is not None:
        given["model"] = _model(config.model, loaded, key)
    permission = [
        *base.permission,
        *from_config.rules(from_config.from_tools(config.tools), home),
        *from_config.rules(config.permission, home),
    ]
    options = {**base.options, **(config.options or {})}
    changes = {name: item for name, item in given.items() if item is not None}
    return replace(base, permission=permission, options=options, **changes)


def _model(text: str, loaded: Loaded, key: str) -> ModelRef:
    provider, _, model = text.partition("/")
    if not provider or not model:
        origin = loaded.origins.get(("agent", key, "model"))
        raise InvalidInput(f"{origin}: the model of agent {key} must be written as provider/model")
    return ModelRef(provider_id=provider, model_id=model)


def _with_tool_output(agent: Agent, places: AgentPlaces) -> Agent:
    """Kept tool output can be read again, unless a rule explicitly denies just that."""
    pattern = f"{places.tool_output}/*"
    if any(
        rule.permission == "external_directory" and rule.pattern == pattern and rule.action == "deny"
        for rule in agent.permission
    ):
        return agent
    rule = Rule(permission="external_directory", pattern=pattern, action="allow")
    return replace(agent, permission=[*agent.permission, rule])


def _default(found: dict[str, Agent], loaded: Loaded) -> str:
    named = loaded.config.default_agent
    if named is not None:
        agent = next((agent for agent in found.values() if agent.name == named), None)
        fault = (
            "does not exist"
            if agent is None or named in loaded.foreign_agents
            else "is a subagent"
            if agent.mode == "subagent"
            else "is hidden"
            if agent.hidden
            else None
        )
        if fault is None:
            return named
        origin = loaded.origins.get(("default_agent",))
        raise InvalidInput(f"{origin}: the default agent {named[:60]} {fault}; name another")
    able = [
        agent.name
        for key, agent in found.items()
        if agent.mode != "subagent" and not agent.hidden and key not in loaded.foreign_agents
    ]
    if not able:
        raise InvalidInput("no agent is left that could answer a person; enable build or another primary one")
    return "build" if "build" in able else min(able)
