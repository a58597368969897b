"""A store that is away while a session works."""

import json
from functools import partial
from typing import Any

import anyio
import pytest
from msgspec.structs import force_setattr

from holdfast.app import Holdfast
from holdfast.clock import SystemClock
from holdfast.errors import StoreBusy, StoreUnsure
from holdfast.runtime.calls import tool_calls
from holdfast.runtime.engine import patience
from holdfast.runtime.process import background, resumption
from holdfast.schema.message import AssistantMessage
from holdfast.sessions.workspaces import FRESH_MS
from holdfast.store.owner import LEASE_MS
from holdfast.testing.clock import FakeClock
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step, Wait, answered
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import tool
from tests.stories import inside
from tests.stories.crashing import Machine, killed_in_a_call, life
from tests.stories.tools import Deed
from tests.stories.world import World, shape
from tests.until import until

VERBS = ("commit", "session", "get", "select", "messages", "changes", "head", "claim")
"""A release is a commit."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No story waits for a pause."""
    monkeypatch.setattr(patience, "PAUSE_S", 0.001)
    monkeypatch.setattr(patience, "WAIT_S", 600.0)
    monkeypatch.setattr(resumption, "AGAIN_S", 0.01)
    monkeypatch.setattr(background, "PAUSE_S", 0.001)


class Weather:
    """Lets calls of a store fail: each `every`-th, before it does anything or after it has done it."""

    def __init__(self, hf: Holdfast, every: int, error: type[Exception], *, after: bool, verbs: Any) -> None:
        self.asked = 0
        self.failed = 0
        for verb in verbs:
            self._spoil(hf.store, verb, every, error, after)

    def _spoil(self, store: Any, verb: str, every: int, error: type[Exception], after: bool) -> None:
        plain = getattr(store, verb)

        async def call(*arguments: Any, **named: Any) -> Any:
            self.asked += 1
            fails = self.asked % every == 0
            answer = await plain(*arguments, **named) if after or not fails else None
            if fails:
                self.failed += 1
                raise error(f"{verb} number {self.asked}")
            return answer

        setattr(store, verb, call)


async def worked(world: World, error: type[Exception] | None, *, after: bool, every: int, verbs: Any) -> Any:
    """A turn with two calls in bad weather: what is said and done, and how often the store failed."""
    deed = Deed("act", ask=False)
    steps = Step(Say("first"), Call("act", {"what": "x"}, id="a")), Step(Call("act", {"what": "y"}, id="b"))
    # A clock that stands: a machine that stalls for longer than a lease would end the turn, as it should.
    async with world.open(*steps, Step(Say("done")), clock=FakeClock()) as (hf, _):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go", resume=False)
        weather = Weather(hf, every, error, after=after, verbs=verbs) if error is not None else None
        with anyio.fail_after(60):
            await hf.sessions.resume(session)
            await inside.coordinator(hf).wait(session)
        page = await inside.coordinator(hf).patient.repeat(hf.sessions.messages, session)
        errors = [each.info.error for each in page.messages if isinstance(each.info, AssistantMessage)]
    return (shape(page.messages), deed.done, errors), 0 if weather is None else weather.failed


@pytest.mark.ci
@pytest.mark.parametrize("every", [2, 3, 5])
async def test_a_store_that_fails_now_and_then_ends_no_turn(world: World, every: int) -> None:
    """Whichever call fails, claims and releases included: the turn goes on as if nothing had happened."""
    world.settings(permission={"*": "allow"})
    calm, _ = await worked(world, None, after=False, every=0, verbs=())

    rough, failed = await worked(world, StoreBusy, after=False, every=every, verbs=VERBS)

    assert rough == calm
    assert failed > 5


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("every", [2, 3])
async def test_answers_of_the_store_that_are_lost_double_nothing(
    world: World, every: int, *, after: bool
) -> None:
    """Each second or third commit ends in doubt, written or not: every message and effect is there once."""
    world.settings(permission={"*": "allow"})
    calm, _ = await worked(world, None, after=False, every=0, verbs=())

    rough, failed = await worked(world, StoreUnsure, after=after, every=every, verbs=("commit",))

    assert rough == calm
    assert failed > 2


async def test_a_process_that_lost_its_lease_goes_on_when_it_can(world: World) -> None:
    """Its own former claims do not hold it up, and the store may be away a little longer."""
    gate = anyio.Event()
    async with world.open(Step(Say("half"), Wait(gate), Say("never")), Step(Say("whole"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: script.requests)
        lease = inside.coordinator(hf).lease
        register, away = hf.store.register, [StoreBusy("away")] * 3

        async def back_later(owner: Any) -> None:
            if away:
                raise away.pop()
            await register(owner)

        hf.store.register = back_later  # type: ignore[method-assign]
        former = lease.id
        assert former is not None
        lease.forget(former)
        with anyio.fail_after(60):
            await until(lambda: len(script.requests) >= 2)
            await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
        assert [part for _, parts in shape(page.messages) for part in parts if part[0] == "text"][-1] == (
            "text",
            "whole",
        )
        assert lease.id not in (None, former)
        gate.set()


async def test_a_process_that_stood_still_for_longer_than_its_lease_asks_the_store_twice(
    world: World,
) -> None:
    """No other process took its sessions meanwhile: one call that fails is repeated, and the turn goes on."""
    gate = anyio.Event()
    async with world.open(Step(Say("half"), Wait(gate), Say("rest")), clock=(clock := Later())) as (
        hf,
        script,
    ):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: script.requests)
        weather = Weather(hf, 2, StoreBusy, after=False, verbs=("commit",))
        weather.asked = 1  # The next commit fails, and each second one after it.
        clock.ms += LEASE_MS
        gate.set()
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
        answer = (await hf.sessions.messages(session)).messages[-1]

    assert weather.failed > 0
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is None
    assert ("text", "rest") in shape((answer,))[-1][1]


async def test_a_process_that_lost_its_lease_does_not_pass_an_unknown_outcome(world: World) -> None:
    """A call was under way: it is settled as unknown, and the model is not asked until a person wants it."""
    world.settings(permission={"*": "allow"})
    deed = Deed("act", ask=False)
    deed.gate = anyio.Event()
    async with world.open(Step(Call("act", {"what": "x"}, id="a"))) as (hf, script):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await deed.begun.wait()
        held = inside.coordinator(hf)
        assert held.lease.id is not None
        held.lease.forget(held.lease.id)
        await until(lambda: not (held.resumption.waiting or held.active()))
        (call,) = [
            part
            for each in (await hf.sessions.messages(session)).messages
            for part in each.parts
            if part.__struct_config__.tag == "tool"
        ]
        assert call.state.metadata.get("outcome") == "unknown"
        assert len(script.requests) == 1


@pytest.mark.ci
async def test_a_process_that_lost_its_lease_does_not_wait_for_output_it_cannot_record(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool has returned and its output is being kept: another process may have the session by now."""
    world.settings(permission={"*": "allow"})
    monkeypatch.setattr(tool_calls, "RECORD_S", 600.0)  # The wait for output that can be recorded.
    keeping = anyio.Event()

    async def keep(text: str) -> str | None:
        keeping.set()
        await anyio.sleep_forever()
        return None

    @tool()
    async def large(context: ToolContext) -> str:
        """Answer much."""
        return "x" * 100_000

    async with world.open(Step(Call("large", {}))) as (hf, _):
        hf.tools.register(large)
        held = inside.coordinator(hf)
        force_setattr(inside.engine(hf), "keep", keep)
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            await keeping.wait()
        assert held.lease.id is not None
        held.lease.forget(held.lease.id)
        await until(lambda: not (held.resumption.waiting or held.active()))


@pytest.mark.parametrize(
    ("own", "project", "trusted", "then"),
    [
        (None, None, False, "goes on"),
        ("auto", None, False, "goes on"),
        ("ask", None, False, "asks"),
        ("off", None, False, "rests"),
        ("off", "auto", False, "rests"),
        ("off", "auto", True, "goes on"),
        ("auto", "unreadable", True, "asks"),
    ],
)
async def test_what_becomes_of_work_that_was_cut_off_is_a_setting(
    world: World, own: str | None, project: str | None, trusted: bool, then: str
) -> None:
    """The user's, or that of a project which the user trusts; where it cannot be read, a person decides.
    `resume` goes on with it in any case.
    """
    world.settings(**({} if own is None else {"recovery": own}))
    gate = anyio.Event()
    steps = Step(Say("half"), Wait(gate)), Step(Say("whole"))
    async with world.open(*steps, clock=(clock := Later())) as (hf, script):
        session = await world.session(hf)
        held = inside.coordinator(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: script.requests)
        if project is not None:
            text = "{" if project == "unreadable" else json.dumps({"recovery": project})
            (world.project / "holdfast.json").write_text(text)
            if trusted:
                await hf.trust.decide(world.project, granted=True)
            clock.ms += FRESH_MS
        heard: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(partial(listen, hf, session, heard))
            await until(lambda: inside.followers(hf))
            assert held.lease.id is not None
            held.lease.forget(held.lease.id)
            await until(lambda: not (held.resumption.waiting or held.active()))
            await until(lambda: then != "asks" or heard)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        told = f"the work was cut off when this process lost its lease; `holdfast session resume {session}`"
        assert [line.startswith(told) for line in heard] == ([True] if then == "asks" else [])
        assert len(script.requests) == (2 if then == "goes on" else 1)
        (world.project / "holdfast.json").unlink(missing_ok=True)
        clock.ms += FRESH_MS
        await hf.sessions.resume(session)
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
        page = await hf.sessions.messages(session)
        gate.set()
    assert ("text", "whole") in shape(page.messages)[-1][1]


async def test_a_turn_waits_for_what_the_store_knows_of_trust(world: World) -> None:
    """Settings are read anew at a boundary, and with them which folders the user trusts."""
    async with world.open(Step(Say("whole")), clock=(clock := Later())) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go", resume=False)
        clock.ms += FRESH_MS
        plain, away = hf.trust.decisions, [StoreBusy("away")] * 3

        async def back_later() -> Any:
            if away:
                raise away.pop()
            return await plain()

        hf.trust.decisions = back_later  # type: ignore[method-assign]
        await hf.sessions.resume(session)
        with anyio.fail_after(60):
            await hf.sessions.wait(session)
        answer = (await hf.sessions.messages(session)).messages[-1]

    assert away == []
    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is None


async def test_a_claim_whose_answer_was_lost_is_known_for_our_own(world: World) -> None:
    """The store granted it, and nobody heard: the session is worked on, and is not waited for in vain."""
    async with world.open(Step(Say("whole"))) as (hf, _):
        session = await world.session(hf)
        Weather(hf, 2, StoreBusy, after=True, verbs=("claim",)).asked = 1
        with anyio.fail_after(60):
            answer = await hf.sessions.process(session, "go")

    assert isinstance(answer.info, AssistantMessage)
    assert answer.info.error is None


class Later(SystemClock):
    """A clock that can be set forward, so that settings are read anew."""

    ms = 0

    def boot_ms(self) -> int:
        return super().boot_ms() + self.ms


async def listen(hf: Holdfast, session: str, heard: list[str]) -> None:
    """The errors that are told of a session."""
    async for frames in hf.feed.follow(session=session):
        told = [frame.value()["error"]["data"] for frame in frames if frame.type == "session.error"]
        heard.extend(each["message"] for each in told)


async def test_leaving_does_not_hide_the_error_that_a_program_leaves_with(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is away when everything is to be given back: what the program raised is what is raised."""

    async def away(_: str) -> None:
        raise StoreBusy("away")

    async def program() -> None:
        async with world.open(Step(Say("hi"))) as (hf, _):
            await hf.sessions.process(await world.session(hf), "go")
            monkeypatch.setattr(hf.store, "retire", away)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await program()


async def test_a_call_that_asks_the_store_waits_for_it(world: World) -> None:
    """What a tool changed is not recorded as failed because the store was away just then."""
    world.settings(permission={"*": "allow"})
    calls = (
        Call("write", {"filePath": "a.txt", "content": "a\n"}, id="w"),
        Call("todoread", {}, id="t"),
        Call("skill", {"name": "none"}, id="s"),
    )
    async with world.open(Step(*calls), Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go", resume=False)
        Weather(hf, 2, StoreBusy, after=False, verbs=("session", "select", "messages", "get"))
        with anyio.fail_after(60):
            await inside.wake(hf, session)
            await inside.coordinator(hf).wait(session)
    told = str(script.requests[-1].messages)
    assert "StoreBusy" not in told
    assert (world.project / "a.txt").read_text() == "a\n"


async def test_a_tool_that_prompts_a_child_waits_for_the_store(world: World) -> None:
    """The child has its prompt once, whichever question or commit is refused first."""
    world.settings(permission={"*": "allow"})
    children, admitted = list[str](), list[str]()

    @tool()
    async def do(context: ToolContext) -> str:
        """Ask a child."""
        Weather(hf, 2, StoreBusy, after=False, verbs=("session", "commit", "get", "select"))
        admitted.append(await context.admit(children[0], "act, child"))
        return "asked"

    async with world.open() as (hf, script):
        hf.tools.register(do)
        session = await world.session(hf)
        children.append(await world.session(hf, parent=session))
        script.add(
            Step(Call("do", {}, id="c"), session=session),
            Step(Say("ok"), session=session, expect=answered("c", "asked")),
            Step(Say("done"), session=children[0]),
        )
        await hf.sessions.prompt(session, "go")
        with anyio.fail_after(60):
            for each in (session, children[0]):
                await inside.coordinator(hf).wait(each)
        page = await inside.coordinator(hf).patient.repeat(hf.sessions.messages, children[0])
    assert [each.info.id for each in page.messages][:1] == admitted
    assert shape(page.messages) == [
        ("user", [("text", "act, child")]),
        ("assistant", ["step-start", ("text", "done"), ("step-finish", "stop")]),
    ]


async def test_a_prompt_whose_session_could_not_be_claimed_is_taken_up_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller has the receipt and may be gone: nobody else would wake the session."""
    monkeypatch.setattr(patience, "WAIT_S", 0.0)
    async with world.open(Step(Say("ok"))) as (hf, script):
        session = await world.session(hf)
        claim, away = hf.store.claim, [StoreBusy("away")] * 3

        async def back_later(*arguments: Any) -> Any:
            if away:
                raise away.pop()
            return await claim(*arguments)

        hf.store.claim = back_later  # type: ignore[method-assign, assignment]
        await hf.sessions.prompt(session, "go")
        await until(lambda: script.requests)
        await hf.sessions.wait(session)


async def test_a_turn_that_is_followed_waits_for_the_store_at_its_end(world: World) -> None:
    """The answer is stored whole: to raise now would say that it is not."""
    async with world.open(Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        get, failed = hf.store.get, list[str]()

        async def fails_once(session: str, kind: Any, id: str) -> Any:
            if kind == "prompt" and not failed:
                failed.append(id)
                raise StoreBusy("away")
            return await get(session, kind, id)

        hf.store.get = fails_once  # type: ignore[method-assign]
        with anyio.fail_after(60):
            frames = [frame.type async for frame in hf.sessions.turn(session, "go")]
    assert (frames[-1], len(failed)) == ("session.idle", 1)


@pytest.mark.parametrize("recovery", ["ask", "off"])
async def test_a_user_who_resumes_while_the_store_is_away_is_heard_whatever_the_setting(
    world: World, monkeypatch: pytest.MonkeyPatch, recovery: str
) -> None:
    """The setting decides about work that was cut off; this was asked for, and has not begun."""
    world.settings(recovery=recovery, permission={"*": "allow"})
    machine, deed = Machine(), Deed(ask=False)
    session = await killed_in_a_call(world, machine, deed)

    with ScriptedProvider(Step(Say("gone on"))) as script:
        async with life(world.store, machine, provider=script) as (hf, _):
            hf.tools.register(deed.tool)
            monkeypatch.setattr(patience, "WAIT_S", 0.0)
            claim, away = hf.store.claim, [StoreBusy("away")] * 3

            async def back_later(*arguments: Any) -> Any:
                if away:
                    raise away.pop()
                return await claim(*arguments)

            hf.store.claim = back_later  # type: ignore[method-assign, assignment]
            await hf.sessions.resume(session)
            await until(lambda: script.requests)
            await hf.sessions.wait(session)


async def test_a_process_that_closes_behind_a_lost_lease_leaves_no_owner(world: World) -> None:
    """It has not registered anew: who opens the store next would wait until the former owner is buried."""
    gate = anyio.Event()
    async with world.open(Step(Say("half"), Wait(gate))) as (hf, script):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: script.requests)
        lease = inside.coordinator(hf).lease
        inside.coordinator(hf).resumption.close()
        lease.forget(inside.owner(hf))
    async with world.open() as (hf, _):
        record = await hf.store.session(session)
        assert record is not None
        assert (record.owner, record.busy) == (None, False)
