"""`holdfast run`: sends a prompt to a session and shows what comes of it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import anyio
import click

from holdfast.cli.complaint import Complaint, complain
from holdfast.cli.config.current import here
from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import clean, note
from holdfast.cli.run.await_title import await_title
from holdfast.cli.run.follow import DONE, FAILED, follow
from holdfast.cli.run.interrupts import Interrupts
from holdfast.cli.run.latest import latest
from holdfast.cli.run.offer_server import offer
from holdfast.cli.run.precheck import check
from holdfast.cli.run.prompt_text import read_prompt
from holdfast.cli.session_name import named
from holdfast.cli.terminal import current_directory
from holdfast.cli.trust import ask_again, ask_trust
from holdfast.config import places
from holdfast.errors import StoreError
from holdfast.log import setup
from holdfast.provider.catalog.name import parse_model
from holdfast.runtime.inbox.choice import Wish
from holdfast.schema.message import AssistantMessage
from holdfast.schema.model import ModelRef
from holdfast.workspace.workspace import Workspace

if TYPE_CHECKING:
    from holdfast.app import Holdfast

T = TypeVar("T")


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
    "--format",
    "form",
    type=click.Choice(["default", "json"]),
    default="default",
    show_default=True,
    help="For people, or one event a line.",
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
    """Send MESSAGE (and what standard input holds) to a session, and show the answer.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 something was denied, 130 interrupted.
    """
    if name is not None and go_on:
        raise click.UsageError("--session and --continue exclude one another")
    text = read_prompt(message)
    wish = Wish(agent=agent, model=None if model is None else _ref(model), variant=variant)
    known = _known(ctx, name, go_on=go_on)
    workspace = _around(ctx, wish)
    if known is None:
        check(workspace, wish)

    async def work(hf: "Holdfast") -> int:
        setup.heed(workspace.loaded.config.log_level)
        interrupts = Interrupts()
        session = known or (await hf.sessions.create(directory=current_directory())).id

        admitted: list[str] = []

        async def prompt() -> None:
            taken = await hf.sessions.prompt(session, text, model=wish.model, agent=agent, variant=variant)
            admitted.append(taken.prompt.id)

        def shown() -> Awaitable[int]:
            return follow(hf, session, prompt, form, interrupts)

        code = await (shown() if known else begun(hf, session, shown))
        if code == DONE and admitted and (why := await unanswered(hf, session, admitted[-1])) is not None:
            complain(Complaint("UnansweredError", why), as_json=form == "json")
            code = FAILED
        if known is None and code == DONE:
            await await_title(hf, session, workspace, interrupts)
        for each in hf.sessions.processes(session):
            if each.end is None:
                note(f"Ended with this command: {each.id} ({clean(each.command.split(chr(10))[0][:100])}).")
        return code

    ctx.exit(with_holdfast(ctx, work, create=known is None))


async def unanswered(hf: "Holdfast", session: str, prompt: str) -> str | None:
    """Why a prompt has no answer though the session rests; None when it has one."""
    record = await hf.store.get(session, "prompt", prompt)
    if record is not None and record.value().promoted is None:
        if await hf.sessions.requests(session):
            return f"{session} waits for an answer to a question, and the prompt waits behind it"
        return f"the prompt waits; `holdfast session resume {session}` goes on with it"
    page = await hf.sessions.messages(session, limit=1)
    last = page.messages[-1].info if page.messages else None
    if isinstance(last, AssistantMessage) and last.error is None and last.time.completed is not None:
        return None
    return f"there is no answer; `holdfast session resume {session}` goes on with the session"


async def begun(hf: "Holdfast", session: str, work: Callable[[], Awaitable[T]]) -> T:
    """Work on the first prompt of a session that was made for it; if none is admitted, it is removed."""
    try:
        return await work()
    except BaseException:
        with anyio.CancelScope(shield=True):
            try:
                if not (await hf.sessions.messages(session, limit=1)).messages:
                    await hf.sessions.remove(session)
            except StoreError:  # What kept the prompt out keeps the removal out too: a disk that is full.
                note(f"Session {session} was made, and stays without a message.")
        raise


def _ref(model: str) -> ModelRef:
    name = parse_model(model)
    return ModelRef(provider_id=name.provider_id, model_id=name.model_id)


def _known(ctx: click.Context, name: str | None, *, go_on: bool) -> str | None:
    """The session to go on with; None for a new one."""
    if name is None and not go_on:
        return None
    with reading(ctx) as store:
        if name is not None:
            return named(store, name).id
        found = latest(store)
    if found.directory != str(current_directory()):
        note(f"Going on with {found.id}, which works in {clean(found.directory)}.")
    return found.id


def _around(ctx: click.Context, wish: Wish) -> Workspace:
    """What is around the current directory, when the user has been asked what must be asked."""
    workspace, decisions = here(ctx)
    if wish.model is None and offer(workspace):
        workspace, decisions = here(ctx)
    worktree = workspace.places.worktree
    trusts = ask_trust(workspace.loaded, decisions.about(worktree))
    agreed = ask_again(workspace.loaded)
    if trusts is None and not agreed:
        return workspace
    named = places.of_environment(workspace.places)

    async def decide(hf: "Holdfast") -> None:
        if trusts is not None:
            await hf.trust.decide(worktree, granted=trusts, named=named)
        for each in agreed:
            await hf.trust.renew(each, worktree)

    with_holdfast(ctx, decide, create=True)
    return here(ctx).workspace
