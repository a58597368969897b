"""The tool `bash`: runs a command of the shell in the project.

What must stay true: the user's rules are asked before it starts; whatever ends the call ends its processes;
an exit code is an answer, not a failure; a command that was begun is never recorded as one that was not.
"""

from typing import Annotated, Final

import anyio
import msgspec

from holdfast.schema.wire import JsonMap
from holdfast.toolkit.box import Box
from holdfast.toolkit.cancellation import is_cancelled
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput
from holdfast.tools.builtin import access
from holdfast.tools.builtin.access import FilesystemOf
from holdfast.tools.managed_output import ManagedOutput
from holdfast.tools.shell import boxed, consent, launch
from holdfast.tools.shell.launch import Launch
from holdfast.tools.shell.output import Output
from holdfast.tools.shell.run import Ended, run

TIMEOUT_MS: Final = 120_000
TIMEOUT_MS_MAX: Final = 600_000
REACHED: Final = "anything that the command reaches"
SAVE_S: Final = 0.1
"""How long an interrupted call takes to save what was printed."""

DESCRIPTION = f"""Run a command in bash, in the project's folder or in `workdir`.

Each call starts a new shell: neither `cd` nor variables last. There is no input and no terminal. Output and \
errors come together; of a long output you get the end, and a file with all of it. After `timeout` \
(at most {TIMEOUT_MS_MAX} ms) the command is ended, and with the command all that it started.
For a server, or another command that goes on, set `background`: you get the id of a process, which the tool \
`process` reads and ends.
Use the other tools to read, search and change files. Write names and paths out rather than compute them: a \
command that cannot be understood in advance has to be asked for.
As a rule commands run in a box: they write to the project and to temporary files only, and have no network. \
Where the box stopped what is needed, the result says so: call again with `unconfined` and a `reason`."""


def bash_tool(filesystem_of: FilesystemOf, managed: ManagedOutput) -> Tool:
    """The tool, over the files that a call may reach."""

    @tool(name="bash", description=DESCRIPTION)
    async def bash(
        context: ToolContext,
        *,
        command: Annotated[str, "The command"],
        description: Annotated[str, "What it does, in five to ten words"] = "",
        timeout: Annotated[  # noqa: ASYNC109 - the name that models know
            int, msgspec.Meta(ge=1, le=TIMEOUT_MS_MAX, description="In milliseconds")
        ] = TIMEOUT_MS,
        workdir: Annotated[str, "Where to run it; use this instead of `cd`"] = ".",
        background: Annotated[bool, "Return at once, and let it run"] = False,
        unconfined: Annotated[bool, "Run it outside the box; the user is asked"] = False,
        reason: Annotated[str, "Why it must run outside the box"] = "",
    ) -> ToolOutput:
        if not command.strip() or "\0" in command:
            raise ToolFailure("The command is empty, or holds a NUL character. Write it again.")
        if unconfined and not reason.strip():
            raise ToolFailure("Say in `reason` why the command must run outside the box.")
        filesystem = filesystem_of(context)
        cwd = await access.resolve(filesystem, workdir)
        sealed = not unconfined and await context.sealed()
        given = await consent.ask(context, filesystem, command, cwd, description, sealed=sealed)
        if cwd.kind != "folder":
            raise ToolFailure(f"There is no folder {cwd.asked} to run the command in.")
        started = await launch.prepare(context, command, cwd.real)
        box = await context.box(
            given.patterns,
            always=given.always,
            metadata=given.metadata,
            unconfined=reason if unconfined else None,
        )
        output = Output(managed)

        if background:
            return await _start(context, started, output, command, description, box=box)

        async def show() -> None:
            shown: JsonMap = {"output": output.shown(), "description": description}
            await context.progress(title=command, metadata=shown)

        try:
            with context.effect(REACHED, waits=False):
                spawned = context.spawn(started.argv, cwd=started.cwd, env=started.env, strays=True, box=box)
                ended = await run(spawned, output, show, timeout_ms=timeout)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                if is_cancelled(error):
                    with anyio.move_on_after(SAVE_S):
                        await show()
                await output.finish()
            raise
        # How it ended is known: an interrupt waits until that can be recorded.
        with context.effect(REACHED), anyio.CancelScope(shield=True):
            await output.finish()
            found = await boxed.found(box, output)
        note = "\n".join(filter(None, (_note(ended, timeout), found.note)))
        facts = {"exit": ended.exit, "description": description, "sandbox": found.facts}
        return _answer(command, output, note, facts)

    return bash


async def _start(
    context: ToolContext, started: Launch, output: Output, command: str, description: str, *, box: Box
) -> ToolOutput:
    made = await context.processes.start(
        started.argv, cwd=started.cwd, env=started.env, command=command, output=output, box=box
    )
    return ToolOutput(
        text=f"It runs in the background as {made.id}, with its output in {made.path}. Read that with the "
        "tool `process`, which can also wait for it, write to its input and end it.",
        title=command,
        metadata={"description": description, "process": made.id, "sandbox": box.facts},
        paths=() if made.path is None else (made.path,),
    )


def _answer(command: str, output: Output, note: str, facts: JsonMap) -> ToolOutput:
    return ToolOutput(
        text=output.text(note),
        title=command,
        metadata={
            "output": output.shown(),
            "truncated": output.path is not None or output.lossy,
            **facts,
        },
        paths=() if output.path is None else (output.path,),
        lossy=output.lossy,
    )


def _note(ended: Ended, timeout_ms: int) -> str:
    """What the model has to know besides the output."""
    if ended.late:
        return (
            f"(The command was ended: it had not finished after {timeout_ms} ms. Give it a longer "
            "`timeout`, run it in the background, or do less at once.)"
        )
    notes = [] if ended.exit in (0, None) else [f"(Exit code {ended.exit}.)"]
    if ended.left:
        notes.append("(A process that it left behind was ended with it.)")
    return "\n".join(notes)
