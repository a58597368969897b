"""`holdfast agents`."""

from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from holdfast.cli.output import clean, format_option, note, print_array, print_raw, print_table
from holdfast.schema.agent import Agent
from holdfast.schema.rule import Ruleset
from holdfast.schema.wire import encode


@click.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Those that work behind the scenes too.")
@format_option
@click.pass_context
def agents(ctx: click.Context, *, name: str | None, everything: bool, form: str) -> None:
    """Show the agents that can be used here, or everything about one of them."""
    from holdfast.cli.config.loading import here
    from holdfast.config import redact

    around = here(ctx).around
    found, loaded = around.agents, around.loaded
    visible = partial(without_secrets, redact.redacted(loaded.value, loaded.origins))
    if name is not None:
        agent = found.get(name)
        if form == "json":
            print_raw(encode(visible(agent)))
        else:
            print_agent(agent, found.restrictions(name))
    else:
        shown = [agent for agent in found.all if everything or not agent.hidden]
        if form == "json":
            print_array(encode(visible(agent)) for agent in shown)
        else:
            rows = [[agent.name, agent.mode, model_of(agent), agent.description or ""] for agent in shown]
            print_table(["AGENT", "MODE", "MODEL", "DESCRIPTION"], rows, stretch=3)
    for line in (*loaded.warnings, *loaded.notices):
        note(line)


def without_secrets(settings: dict[str, Any], agent: Agent) -> Agent:
    """The agent as it may be shown: options may hold keys."""
    from holdfast.config import redact

    entry = settings.get("agent", {}).get(agent.name, {})
    options = entry.get("options") or redact.redacted(agent.options, {})
    return replace(agent, options=options if agent.options else {})


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
