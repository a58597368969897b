"""The agents that come with Holdfast, their permissions and their instructions.

The instructions are texts in `builtin/agents/`, one file each; `build` has none beyond the base text.
"""

import os
from functools import cache
from pathlib import Path

import msgspec

from holdfast.permission import from_config
from holdfast.schema.agent import Agent
from holdfast.schema.config import PermissionConfig
from holdfast.schema.permission import Action, Ruleset

READ_ONLY = ("plan", "explore")
"""Agents whose commands change nothing, whatever the settings say."""
NAMES = ("build", "plan", "general", "explore", "compaction", "title", "summary")


class AgentPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Directories that the permissions of agents speak of."""

    home: Path
    worktree: Path
    data: Path
    tool_output: Path
    temporary: Path | None = None
    """A folder of this user's agents alone; None where there can be none."""
    readable: tuple[Path, ...] = ()
    """Skills and references: read without asking, wherever they lie."""


def defaults(places: AgentPlaces) -> Ruleset:
    """What every agent may do unless something later says otherwise."""
    return _rules(
        places,
        {
            "*": "allow",
            "doom_loop": "ask",
            "unconfined": "ask",
            "external_directory": _outside(places),
            "question": "deny",
            "plan_enter": "deny",
            "plan_exit": "deny",
            "private_address": "ask",
            "read": {"*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow"},
        },
    )


def builtin(places: AgentPlaces) -> dict[str, Agent]:
    """The agents by name, before any setting of the user."""
    plans = places.data / "plans"
    beside = os.path.relpath(plans, places.worktree)
    nothing: PermissionConfig = {"*": "deny"}
    return {
        agent.name: agent
        for agent in (
            _agent(
                places,
                "build",
                "primary",
                "Does the work: reads, edits and runs whatever the permissions allow.",
                {"question": "allow", "plan_enter": "allow"},
            ),
            _agent(
                places,
                "plan",
                "primary",
                "Reads and thinks, and writes a plan; changes nothing.",
                {
                    "question": "allow",
                    "plan_exit": "allow",
                    "unconfined": "deny",
                    "task": {"general": "deny"},
                    "external_directory": {f"{plans}/*": "allow"},
                    "edit": {
                        "*": "deny",
                        ".holdfast/plans/*.md": "allow",
                        ".opencode/plans/*.md": "allow",
                        f"{beside}/*.md": "allow",
                        f"{plans}/*.md": "allow",
                    },
                },
            ),
            _agent(
                places,
                "general",
                "subagent",
                "Carries out one piece of a larger task by itself. Use it for work in several steps, "
                "or for several pieces at once.",
                {"todowrite": "deny"},
            ),
            _agent(
                places,
                "explore",
                "subagent",
                "Finds files, code and answers in a code base, quickly and without changing anything. Say "
                "what to look for, and whether a few quick searches or a thorough hunt is wanted.",
                {
                    "*": "deny",
                    **dict.fromkeys(
                        ("grep", "glob", "list", "bash", "webfetch", "websearch", "read"), "allow"
                    ),
                    "external_directory": _outside(places),
                },
            ),
            _agent(places, "compaction", "primary", None, nothing, hidden=True),
            _agent(places, "title", "primary", None, nothing, hidden=True, temperature=0.5),
            _agent(places, "summary", "primary", None, nothing, hidden=True),
        )
    }


@cache
def instructions(name: str) -> str | None:
    """The text of an agent."""
    path = Path(__file__).parent / "builtin" / "agents" / f"{name}.md"
    return path.read_text("utf-8").strip() if path.exists() else None


def _agent(
    places: AgentPlaces,
    name: str,
    mode: str,
    description: str | None,
    permission: PermissionConfig,
    *,
    hidden: bool | None = None,
    temperature: float | None = None,
) -> Agent:
    return Agent(
        name=name,
        description=description,
        mode="primary" if mode == "primary" else "subagent",
        native=True,
        hidden=hidden,
        temperature=temperature,
        permission=[*defaults(places), *_rules(places, permission)],
        prompt=instructions(name),
        options={},
    )


def _outside(places: AgentPlaces) -> dict[str, Action]:
    inside = (places.tool_output, places.temporary, *places.readable)
    return {"*": "ask", **{f"{path}/*": "allow" for path in inside if path is not None}}


def _rules(places: AgentPlaces, config: PermissionConfig) -> Ruleset:
    return from_config.rules(config, str(places.home))
