"""`holdfast run`: says something to a session and shows what comes of it."""

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.config.loading import here
from holdfast.cli.current_directory import current_directory
from holdfast.cli.opening import with_holdfast
from holdfast.cli.running.following import follow
from holdfast.cli.running.offering import offer
from holdfast.cli.trust_asking import ask_trust
from holdfast.store.query import SessionQuery

if TYPE_CHECKING:
    from holdfast.app import Holdfast

STDIN_MAX = 1024 * 1024


@click.command()
@click.argument("message", nargs=-1)
@click.option("-m", "--model", metavar="PROVIDER/MODEL", help="Who answers.")
@click.option("--agent", metavar="NAME", help="The agent that answers.")
@click.option("--variant", metavar="NAME", help="The variant of the model.")
@click.option("-s", "--session", "name", metavar="ID", help="Go on with this session.")
@click.option(
    "-c", "--continue", "go_on", is_flag=True, help="Go on with the latest session of this project."
)
@click.option(
    "--format", "form", type=click.Choice(["default", "json"]), default="default", show_default=True
)
@click.pass_context
def run(
    ctx: click.Context,
    *,
    message: tuple[str, ...],
    model: str | None,
    agent: str | None,
    variant: str | None,
    name: str | None,
    go_on: bool,
    form: str,
) -> None:
    """Say MESSAGE (and what standard input holds) to a session, and show the answer.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 something was denied, 130 interrupted.
    """
    text = _text(message)
    if name is not None and go_on:
        raise click.UsageError("--session and --continue exclude one another")
    around, decisions = here(ctx)
    if model is None and offer(around):
        around, decisions = here(ctx)
    worktree = around.places.worktree
    trusts = ask_trust(around.loaded, decisions.about(worktree))

    async def work(hf: "Holdfast") -> int:
        if trusts is not None:
            await hf.trust.decide(worktree, granted=trusts)
        session = await _session(hf, name, go_on=go_on)
        return await follow(
            hf,
            session,
            lambda: hf.sessions.prompt(session, text, model=model, agent=agent, variant=variant),
            form,
        )

    ctx.exit(with_holdfast(ctx, work, create=True))


def _text(message: tuple[str, ...]) -> str:
    said = " ".join(message)
    if not sys.stdin.isatty():
        given = sys.stdin.read(STDIN_MAX + 1)
        if len(given) > STDIN_MAX:
            raise click.UsageError("standard input holds more than 1 MiB; give it as a file")
        said = "\n\n".join(filter(None, (said, given.strip())))
    if not said.strip():
        raise click.UsageError("there is nothing to say; give a message")
    return said


async def _session(hf: "Holdfast", name: str | None, *, go_on: bool) -> str:
    if name is not None:
        return (await hf.sessions.named(name)).id
    if go_on:
        directory = str(current_directory())
        page = await hf.sessions.list(SessionQuery(directory=directory, roots=True, archived=False, limit=1))
        if not page.sessions:
            raise click.UsageError("there is no session here to go on with")
        return page.sessions[0].id
    return (await hf.sessions.create(directory=current_directory())).id
