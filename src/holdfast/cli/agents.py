"""`holdfast agents`."""

from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from holdfast.cli.output import clean, format_option, note, print_array, print_raw, print_table
from holdfast.cli.paged import paged
from holdfast.schema.agent import Agent
from holdfast.schema.model import ModelRef
from holdfast.schema.permission import Ruleset
from holdfast.schema.wire import encode


@click.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Those that work behind the scenes too.")
@format_option
@click.pass_context
@paged
def agents(ctx: click.Context, *, name: str | None, everything: bool, form: str) -> None:
    """Show the agents that can be used here, or everything about one of them."""
    from holdfast.cli.config.current import here
    from holdfast.config.layers import redact

    workspace = here(ctx).workspace
    found, loaded = workspace.agents, workspace.loaded
    visible = partial(without_secrets, loaded.value, redact.redacted(loaded.value, loaded.origins))
    if name is not None:
        agent = visible(found.get(name))
        if form == "json":
            print_raw(encode(agent))
        else:
            print_agent(agent, found.restrictions(name))
    else:
        shown = [visible(agent) for agent in found.all if everything or not agent.hidden]
        if form == "json":
            print_array(map(encode, shown))
        else:
            rows = [[agent.name, agent.mode, model_of(agent), agent.description or ""] for agent in shown]
            print_table(["AGENT", "MODE", "MODEL", "DESCRIPTION"], rows, stretch=3)
    for line in (*loaded.warnings, *loaded.notices):
        note(line)


def without_secrets(value: dict[str, Any], safe: dict[str, Any], agent: Agent) -> Agent:
    """The agent as it may be shown: options may hold keys, and anything what came from the environment.

    `value` are the settings that made it, `safe` the same as they may be shown.
    """
    from holdfast.config.documents import substitute
    from holdfast.config.layers import redact

    entries = value.get("agent", {})
    key = next(
        (key for key, entry in entries.items() if (entry.get("name") or key) == agent.name), agent.name
    )
    entry, shown = entries.get(key, {}), safe.get("agent", {}).get(key, {})
    changed: dict[str, Any] = {
        field: shown[field]
        for field in ("description", "variant", "prompt", "color")
        if entry.get(field) is not None and shown[field] != entry[field]
    }
    if (asked := substitute.REFERENCE.fullmatch(changed.get("prompt", ""))) and asked[1] == "file":
        changed["prompt"] = redact.text(entry["prompt"])  # The text of a file is what the user wants to see.
    if agent.model is not None and shown.get("model") != entry.get("model"):
        provider, _, model = shown["model"].partition("/")
        changed["model"] = ModelRef(provider_id=provider, model_id=model)
    if agent.options:
        changed["options"] = shown.get("options") or redact.redacted(agent.options, {})
    patterns = _patterns(value.get("permission"), safe.get("permission"))
    patterns |= _patterns(entry.get("permission"), shown.get("permission"))
    changed["permission"] = [
        replace(rule, pattern=patterns.get(rule.pattern, redact.text(rule.pattern)))
        for rule in agent.permission
    ]
    return replace(agent, **changed)


def _patterns(value: Any, shown: Any) -> dict[str, str]:
    """Patterns that may not be shown, and what stands for each. Only rules in order can hold any."""
    if not isinstance(value, list) or not isinstance(shown, list):
        return {}
    return {
        rule["pattern"]: seen["pattern"]
        for rule, seen in zip(value, shown, strict=True)
        if rule["pattern"] != seen["pattern"]
    }


def model_of(agent: Agent) -> str:
    """The model of an agent, as it is written in settings."""
    if agent.model is None:
        return ""
    return f"{agent.model.provider_id}/{agent.model.model_id}"


def print_agent(agent: Agent, restrictions: tuple[Ruleset, ...]) -> None:
    """Everything about an agent."""
    click.echo(click.style(clean(agent.name), bold=True))
    facts = {
        "about": agent.description,
        "mode": agent.mode,
        "model": model_of(agent),
        "variant": agent.variant,
        "temperature": agent.temperature,
        "top_p": agent.top_p,
        "steps": agent.steps,
        "color": agent.color,
        "options": ", ".join(agent.options),
        "built in": "yes" if agent.native else None,
    }
    for key, fact in facts.items():
        if fact is not None and fact != "":
            click.echo(f"  {key:<12} {clean(str(fact))}")
    click.echo("\npermissions (the last that matches counts)")
    for rule in agent.permission:
        click.echo(clean(f"  {rule.action:<6} {rule.permission} {rule.pattern}"))
    for rules in restrictions:
        click.echo("\nnever more than")
        for rule in rules:
            click.echo(clean(f"  {rule.action:<6} {rule.permission} {rule.pattern}"))
    if agent.prompt:
        click.echo("\ninstructions")
        for line in agent.prompt.splitlines():
            click.echo(f"  {clean(line)}")
