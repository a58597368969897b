"""The commands."""

from typing import NamedTuple

import click

from holdfast.cli import color
from holdfast.cli.lazy import LazyGroup
from holdfast.version import __version__


@click.group(
    cls=LazyGroup,
    table={
        "run": ("holdfast.cli.run.command:run", "Send a prompt to a session, and show the answer."),
        "session": ("holdfast.cli.session.group:session", "List, show, search, fork, export … sessions."),
        "models": ("holdfast.cli.models.group:models", "Models: limits, prices, what they take."),
        "providers": (
            "holdfast.cli.providers.group:providers",
            "Keep, list and forget the keys of providers.",
        ),
        "mcp": ("holdfast.cli.mcp.group:mcp", "MCP servers: list, add, remove, sign in, look at one."),
        "import": ("holdfast.cli.import_:importing", "Bring sessions from another tool."),
        "config": ("holdfast.cli.config.group:config", "The settings in force, and where each was set."),
        "agents": ("holdfast.cli.agents:agents", "The agents that can be used here."),
        "trust": ("holdfast.cli.trust:trust", "Let the files of a folder configure the agent."),
        "info": ("holdfast.cli.info.command:info", "Versions, paths and settings, for a report of a fault."),
        "doctor": ("holdfast.cli.doctor:doctor", "Verify the store, and repair it when asked."),
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(__version__, "-V", "--version", prog_name="holdfast", message="%(prog)s %(version)s")
@click.option(
    "--store",
    metavar="URL",
    help="sqlite:///PATH, file:///PATH or postgresql://… (default: HOLDFAST_STORE, else the user's own).",
)
@click.option("--adopt", is_flag=True, help="Take over, in place, a JSON tree that OpenCode made.")
@click.pass_context
def root(ctx: click.Context, *, store: str | None, adopt: bool) -> None:
    """A durable session runtime for AI coding agents."""
    ctx.color = color.wanted()
    ctx.obj = Choice(store, adopt)


class Choice(NamedTuple):
    """The store, and whether a tree of OpenCode's may be taken over."""

    store: str | None
    adopt: bool
