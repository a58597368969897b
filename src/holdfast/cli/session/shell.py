"""`holdfast session shell`."""

from typing import TYPE_CHECKING

import anyio
import click

from holdfast.cli.main import INTERRUPTED
from holdfast.cli.open_store import reading, with_holdfast
from holdfast.cli.output import format_option, print_json
from holdfast.cli.run.interrupts import Interrupts
from holdfast.cli.session_name import named, session_argument
from holdfast.schema.message import MessageWithParts
from holdfast.schema.part import ToolPart
from holdfast.schema.tool_state import ToolCompleted
from holdfast.text import printable

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.argument("command")
@format_option
@click.pass_context
def shell(ctx: click.Context, *, name: str, command: str, form: str) -> None:
    """Run COMMAND in a session's directory, in your own shell; the model sees it with the next prompt.

    The exit code is that of the command; 130 when it was interrupted.
    """
    with reading(ctx) as store:
        session = named(store, name).id

    async def work(hf: "Holdfast") -> int:
        interrupts = Interrupts()
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await interrupts.asked.wait()
                await hf.sessions.interrupt(session)

            group.start_soon(stop)
            message = await hf.sessions.shell(session, command)
            group.cancel_scope.cancel()
        return _show(message, form, interrupted=interrupts.asked.is_set())

    ctx.exit(with_holdfast(ctx, work))


def _show(message: MessageWithParts, form: str, *, interrupted: bool) -> int:
    (state,) = [part.state for part in message.parts if isinstance(part, ToolPart)]
    assert isinstance(state, ToolCompleted), "it is settled that way"
    if form == "json":
        print_json({"message": message.id, "exit": state.metadata["exit"], "output": state.output})
    else:
        for line in state.output.split("\n"):
            click.echo(printable(line))
    code = state.metadata["exit"]
    if interrupted or not isinstance(code, int):
        return INTERRUPTED
    return code if code >= 0 else 128 - code
