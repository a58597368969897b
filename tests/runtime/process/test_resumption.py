"""What a session that was cut off, or not begun, is woken with."""

from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import anyio
import pytest

from holdfast.errors import RecordCorrupt, StoreBusy
from holdfast.runtime.process import resumption
from holdfast.runtime.process.due import CutOff, Due
from holdfast.runtime.process.resumption import Resumption
from holdfast.runtime.process.running_session import RunningSession
from tests.until import until


async def test_a_later_cut_off_forgets_the_word_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was meant for the outcome that was not known then; of this one he has not heard."""
    monkeypatch.setattr(resumption, "AGAIN_S", 0.01)
    woken, settings, away = list[bool](), anyio.Event(), [StoreBusy("away")] * 3

    async def owner() -> str:
        if away:
            raise away.pop()
        return "own_1"

    async def wake(session: str) -> None:
        woken.append(False)

    async def take_on(session: str, due: Due) -> None:
        woken.append(due.force)

    class Off(Resumption):
        async def _setting(self, session: str) -> Any:
            settings.set()
            return "off"

    noted = Off(None, owner, wake, take_on)  # type: ignore[arg-type]
    async with anyio.create_task_group() as group:
        group.start_soon(noted.keep)
        noted.note("ses_1", Due(again=True, force=True))
        noted.note("ses_1", CutOff())
        with anyio.fail_after(30):
            await settings.wait()
        group.cancel_scope.cancel()
    assert woken == []


async def test_what_is_refused_at_once_is_not_tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause stands between two tries, though the store has nothing against a look."""
    monkeypatch.setattr(resumption, "AGAIN_S", 0.1)
    woken = 0

    async def owner() -> str:
        return "own_1"

    async def refuse() -> None:
        noted.note("ses_1", Due(again=True))

    async def wake(session: str) -> None:
        raise AssertionError

    async def take_on(session: str, due: Due) -> None:
        nonlocal woken
        woken += 1
        group.start_soon(refuse)

    noted = Resumption(None, owner, wake, take_on)  # type: ignore[arg-type]
    async with anyio.create_task_group() as group:
        group.start_soon(noted.keep)
        noted.note("ses_1", Due(again=True))
        await anyio.sleep(0.35)
        group.cancel_scope.cancel()
    assert 1 <= woken <= 4


@pytest.mark.parametrize("error", [RecordCorrupt("ses_bad", "session", "ses_bad", "x"), ZeroDivisionError()])
async def test_a_session_that_cannot_be_decided_about_keeps_no_other_waiting(error: Exception) -> None:
    """Its record is damaged, or its settings fail in an unknown way: the user is asked about that one."""
    woken, told = list[str](), list[Any]()

    class Record(NamedTuple):
        id: str

        def value(self) -> str:
            if self.id == "ses_bad":
                raise error
            return self.id

    async def session(id: str) -> Record:
        return Record(id)

    async def workspace(_: str) -> Any:
        return SimpleNamespace(loaded=SimpleNamespace(config=SimpleNamespace(recovery=None)))

    async def owner() -> str:
        return "own_1"

    async def wake(session: str) -> None:
        woken.append(session)

    async def take_on(session: str, due: Due) -> None:
        raise AssertionError

    feed = SimpleNamespace(publish=lambda *given, **_: told.append(given))
    engine = SimpleNamespace(store=SimpleNamespace(session=session), workspace=workspace, feed=feed)
    noted = Resumption(cast("Any", engine), owner, wake, take_on)
    async with anyio.create_task_group() as group:
        group.start_soon(noted.keep)
        noted.note("ses_bad", CutOff())
        noted.note("ses_good", CutOff())
        with anyio.fail_after(30):
            await until(lambda: not noted.waiting)
        group.cancel_scope.cancel()
    assert (woken, len(told)) == (["ses_good"], 1)


def test_a_resume_behind_an_interrupt_is_not_the_interrupted_runs() -> None:
    """The run that stops leaves it to the one that comes after it."""
    running = RunningSession()
    running.end()
    running.again = running.force = True
    assert (running.take_force(), running.force) == (False, True)
