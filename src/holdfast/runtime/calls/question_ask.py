"""Questions of the model to the user: recorded, answered once from any client, and waited for in bounds.

What must stay true: where the user is not attached nothing waits, and the model is answered so; a user who is
attached and does not reply is waited for within a bound, then the session parks and the questions stay open;
a call that is run again after a crash gets the answer that was given to it before.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from holdfast.errors import Conflict, InvalidInput, NotFound
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.engine.run import Run
from holdfast.schema.request import Question, QuestionAnswer, QuestionRequest, RequestTime, ToolRef
from holdfast.schema.session import Session
from holdfast.schema.stored import Mark
from holdfast.schema.wire import checked
from holdfast.store.batch import Batch, Put, Unchanged
from holdfast.store.on_conflict import on_conflict
from holdfast.store.put import put
from holdfast.toolkit.output import ToolDenied, ToolFailure, ToolParked
from holdfast.tools.plain import plain

NOBODY: Final = "Nobody is there to answer. Decide by yourself, and say in your answer what you assumed."
DISMISSED: Final = "The user dismissed the questions."


class QuestionAsk:
    """The questions of one turn's calls. `again`: the calls are run again and may have asked before.

    `goes_on`: a dismissal is passed to the model and does not end the work.
    """

    def __init__(self, run: Run, session: Session, *, again: bool, goes_on: bool) -> None:
        self._run = run
        self._session = session
        self._again = again
        self._goes_on = goes_on
        self._open: dict[str, QuestionRequest] = {}

    async def ask(self, questions: Sequence[Question], tool: ToolRef) -> list[list[str]]:
        """The answers, question by question; `ToolDenied` when the user dismissed them."""
        engine = self._run.engine
        attached = engine.presence.attached(self._session)
        request = await self._find_earlier(questions, tool) if self._again else None
        if request is None:
            if not attached:
                raise ToolFailure(NOBODY)
            request = await self._write(questions, tool)
        if request.time.answered is None:
            self._open[request.id] = request
            if not attached:
                raise ToolParked(f"nobody is there to answer {request.id}, which was asked before")
            wait_s = engine.limits.answer_wait_ms / 1_000
            replied = await self._run.watcher.answered(self._session.id, request.id, wait_s=wait_s)
            if replied is None:
                raise ToolParked(f"session {self._session.id} waits for an answer to {request.id}")
            assert isinstance(replied, QuestionRequest)
            request = replied
            del self._open[request.id]
        answers = None if request.answer is None else request.answer.answers
        if answers is None:
            raise ToolDenied(DISMISSED, stops=not self._goes_on)
        if request.time.heard is None:
            time = replace(request.time, heard=engine.clock.now_ms())
            await self._run.recorder.commit(put(replace(request, time=time)))
        return answers

    def waits(self, call: str) -> bool:
        """Whether questions of the call are still open."""
        return any(_is_of(each, {call}) for each in self._open.values())

    def withdrawn(self, call: str) -> list[Put]:
        """The open questions of a call that is over, closed."""
        now_ms = self._run.engine.clock.now_ms()
        over = [id for id, each in self._open.items() if _is_of(each, {call})]
        return [put(_answered(self._open.pop(id), QuestionAnswer(), now_ms)) for id in over]

    async def _find_earlier(self, questions: Sequence[Question], tool: ToolRef) -> QuestionRequest | None:
        for record in await self._run.engine.store.select("request", session=self._session.id):
            value = record.value()
            if not isinstance(value, QuestionRequest) or value.tool != tool:
                continue
            if value.questions == list(questions):
                return value
        return None

    async def _write(self, questions: Sequence[Question], tool: ToolRef) -> QuestionRequest:
        request = QuestionRequest(
            id=self._run.engine.mint.ascending("que"),
            session_id=self._session.id,
            questions=list(questions),
            tool=tool,
            time=RequestTime(created=self._run.engine.clock.now_ms()),
        )
        request = plain(QuestionRequest, request)  # A tool may pass anything.
        await self._run.recorder.commit(put(request))
        return request


async def answer(
    engine: Engine, session: str, id: str, answers: Sequence[Sequence[str]] | None
) -> QuestionRequest:
    """Answer questions, once; None dismisses them."""
    given = None if answers is None else [list(each) for each in answers]
    value = checked(QuestionAnswer(answers=given), "the answer")

    async def once() -> QuestionRequest:
        record = await engine.store.get(session, "request", id)
        request = None if record is None else record.value()
        if record is None or not isinstance(request, QuestionRequest):
            raise NotFound(f"there is no question {id[:60]} in session {session}")
        if request.time.answered is not None:
            raise Conflict(f"question {id} was answered already")
        if value.answers is not None:
            _check(request, value.answers)
        done = _answered(request, value, engine.clock.now_ms())
        await engine.store.commit(Batch((put(done),), (Unchanged(session, "request", id, record.seq),)))
        return done

    return await on_conflict(once)


async def withdraw(engine: Engine, session: str, calls: set[str]) -> list[Put]:
    """Close the open questions of calls that a dead runner left."""
    if not calls:
        return []
    now_ms = engine.clock.now_ms()
    records = await engine.store.select("request", session=session, mark=Mark.OPEN)
    values = [record.value() for record in records]
    return [
        put(_answered(each, QuestionAnswer(), now_ms))
        for each in values
        if isinstance(each, QuestionRequest) and _is_of(each, calls)
    ]


def _check(request: QuestionRequest, answers: list[list[str]]) -> None:
    """`InvalidInput` for answers that do not fit the questions."""
    if len(answers) != len(request.questions):
        raise InvalidInput(f"there are {len(request.questions)} questions, and {len(answers)} answers")
    for question, chosen in zip(request.questions, answers, strict=True):
        if len(chosen) > 1 and not question.multiple:
            raise InvalidInput(f"only one answer may be given to: {question.question[:80]}")
        labels = {option.label for option in question.options}
        if question.custom is False and not labels.issuperset(chosen):
            raise InvalidInput(f"one of the options must be chosen for: {question.question[:80]}")


def _answered(request: QuestionRequest, given: QuestionAnswer, now_ms: int) -> QuestionRequest:
    return replace(request, answer=given, time=replace(request.time, answered=now_ms))


def _is_of(request: QuestionRequest, calls: set[str]) -> bool:
    return request.tool is not None and request.tool.call_id in calls
