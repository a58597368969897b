"""The calls of the public API of sessions that need the engine: prompt, wait, interrupt, reply.

The first of them loads the engine: a process that only reads does not wait for it. The keyword arguments of a
prompt are written out in each signature, so that editors and `help` show them.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Literal

from holdfast.schema.message import MessageWithParts
from holdfast.schema.model import ModelRef
from holdfast.schema.output_format import OutputFormat
from holdfast.schema.prompt import Delivery, PartInput
from holdfast.sessions.access import StoreAccess
from holdfast.sessions.options import PromptOptions

if TYPE_CHECKING:
    from holdfast.feed.frame import Frame
    from holdfast.runtime.inbox.admission import Admitted
    from holdfast.schema.request import PermissionRequest, QuestionRequest, Reply
    from holdfast.sessions.context import ContextView
    from holdfast.sessions.prompts import Prompts
    from holdfast.sessions.state import State
    from holdfast.toolkit.processes import ProcessInfo


class EngineCalls:
    """What a caller may do with sessions that run."""

    def __init__(self, access: StoreAccess, prompting: "Callable[[], Prompts]") -> None:
        self.access = access
        self._make_prompting = prompting
        self._made: Prompts | None = None

    def _prompting(self) -> "Prompts":
        self._made = self._make_prompting()
        return self._made

    def _end_processes(self, session: str) -> None:
        """End the background processes of a session, if this process has started any."""
        if self._made is not None:
            self._made.end_processes(session)

    def processes(self, session: str) -> "list[ProcessInfo]":
        """The processes in the background of a session that this process runs, and those that have ended."""
        return self._prompting().processes(session)

    async def shell(
        self,
        session: str,
        command: str,
        *,
        agent: str | None = None,
        model: str | ModelRef | None = None,
    ) -> MessageWithParts:
        """Run a command of the user's own in the session's directory, and wait for it: no rule is asked.

        The model sees it with the next prompt; no turn follows. `Refused` while the session works; an
        `interrupt` ends it. `agent` and `model` are those that the record names.
        """
        return await self._prompting().shell(session, command, agent=agent, model=model)

    async def prompt(
        self,
        session: str,
        parts: str | Sequence[PartInput],
        *,
        id: str | None = None,
        delivery: Delivery = "steer",
        agent: str | None = None,
        model: str | ModelRef | None = None,
        variant: str | None = None,
        system: str | None = None,
        tools: dict[str, bool] | None = None,
        format: OutputFormat | None = None,
        no_reply: bool = False,
        resume: bool = True,
    ) -> "Admitted":
        """Admit a prompt durably, then wake the session unless `resume` is False; nothing is waited for.

        `delivery`: "steer" joins running work at its next step, "queue" waits until the session would go
        idle. `system` is sent with this prompt only, `tools` turns tools on or off by name, `format` asks for
        a value of a JSON schema. The same `id` with the same content admits once, however often it is sent.
        """
        options = PromptOptions(
            id=id,
            delivery=delivery,
            agent=agent,
            model=model,
            variant=variant,
            system=system,
            tools=tools,
            format=format,
            no_reply=no_reply,
        )
        return await self._prompting().prompt(session, parts, options, resume=resume)

    async def process(
        self,
        session: str,
        parts: str | Sequence[PartInput],
        *,
        id: str | None = None,
        delivery: Delivery = "steer",
        agent: str | None = None,
        model: str | ModelRef | None = None,
        variant: str | None = None,
        system: str | None = None,
        tools: dict[str, bool] | None = None,
        format: OutputFormat | None = None,
        no_reply: bool = False,
        check: bool = True,
    ) -> MessageWithParts:
        """Prompt (the options are those of `prompt`), and wait for the last answer.

        `AnswerFailed`, with the answer in it, if that ended with an error; with `check=False` it is returned
        as it is. `LeaseLost` if the process that worked on it is gone or had to stop: an unfinished answer is
        never returned.
        """
        options = PromptOptions(
            id=id,
            delivery=delivery,
            agent=agent,
            model=model,
            variant=variant,
            system=system,
            tools=tools,
            format=format,
            no_reply=no_reply,
        )
        return await self._prompting().process(session, parts, options, check=check)

    def turn(
        self,
        session: str,
        parts: str | Sequence[PartInput],
        *,
        id: str | None = None,
        delivery: Delivery = "steer",
        agent: str | None = None,
        model: str | ModelRef | None = None,
        variant: str | None = None,
        system: str | None = None,
        tools: dict[str, bool] | None = None,
        format: OutputFormat | None = None,
        no_reply: bool = False,
        check: bool = True,
    ) -> "AsyncGenerator[Frame, None]":
        """Prompt (the options are those of `prompt`), and yield every event of the session until it is idle.

        When all events are out, an answer that ended with an error raises `AnswerFailed`, unless `check` is
        False. As in `process`, work that was cut off raises `LeaseLost`. To leave early, close the generator
        (`contextlib.aclosing`); the session keeps working.
        """
        options = PromptOptions(
            id=id,
            delivery=delivery,
            agent=agent,
            model=model,
            variant=variant,
            system=system,
            tools=tools,
            format=format,
            no_reply=no_reply,
        )
        return self._prompting().turn(session, parts, options, check=check)

    def stream_text(
        self,
        session: str,
        parts: str | Sequence[PartInput],
        *,
        id: str | None = None,
        delivery: Delivery = "steer",
        agent: str | None = None,
        model: str | ModelRef | None = None,
        variant: str | None = None,
        system: str | None = None,
        tools: dict[str, bool] | None = None,
        format: OutputFormat | None = None,
        no_reply: bool = False,
        check: bool = True,
    ) -> AsyncGenerator[str, None]:
        """Prompt (the options are those of `prompt`), and yield the text of the answers as it comes.

        In several pieces or in one, each character once; what the model thinks and what its tools do is left
        out. It ends as `turn` does: with `AnswerFailed`, unless `check` is False.
        """
        from holdfast.sessions import text_stream

        options = PromptOptions(
            id=id,
            delivery=delivery,
            agent=agent,
            model=model,
            variant=variant,
            system=system,
            tools=tools,
            format=format,
            no_reply=no_reply,
        )
        return text_stream.pieces(self._prompting().turn(session, parts, options, check=check))

    async def state(self, session: str, *, limit: int = 100) -> "State":
        """Everything a client needs to show the session: itself, its latest messages, what it may do."""
        return await self._prompting().state(session, limit=limit)

    async def wait(self, session: str) -> None:
        """Return when no process runs the session any more."""
        await self._prompting().wait(session)

    async def interrupt(self, session: str) -> bool:
        """Stop the session, and return when everything is settled: whether there was anything to stop."""
        return await self._prompting().interrupt(session)

    async def titled(self, session: str) -> None:
        """Return when the session has its title, or this process no longer tries to give it one."""
        await self._prompting().titled(session)

    async def resume(self, session: str) -> None:
        """Continue a session that was left unfinished."""
        await self._prompting().resume(session)

    async def compact(self, session: str, *, force: bool = False) -> Literal["admitted", "not needed"]:
        """Request a compaction: a summary replaces the beginning in the model view; `wait` until it is done.

        Without `force` nothing happens while the session is under every threshold.
        """
        return await self._prompting().compact(session, force=force)

    async def context(self, session: str) -> "ContextView":
        """What the model is sent: every block in send order, with its source, its size, and the cache."""
        return await self._prompting().context(session)

    async def requests(self, session: str) -> "Sequence[PermissionRequest | QuestionRequest]":
        """The session's open permission requests and questions."""
        return await self._prompting().requests(session)

    async def reply(
        self, session: str, request: str, reply: "Reply", *, message: str | None = None
    ) -> "PermissionRequest":
        """Answer a permission request."""
        return await self._prompting().reply(session, request, reply, message=message)

    async def answer(
        self, session: str, request: str, answers: "Sequence[Sequence[str]] | None"
    ) -> "QuestionRequest":
        """Answer questions of the model, each with the labels chosen or a text typed; None dismisses them."""
        return await self._prompting().answer(session, request, answers)
