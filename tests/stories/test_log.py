"""What an operator reads in the log: who ran what, how it ended, and why it was slow. Never what was said."""

import logging
from collections.abc import Iterator

import anyio
import pytest

from holdfast.errors import ProviderError
from holdfast.log import event
from holdfast.runtime.answer import retry
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Fail, ScriptedProvider, Step, Wait
from tests.stories import inside
from tests.stories.compaction import LONG
from tests.stories.crashing import Machine, life
from tests.stories.tools import Deed
from tests.stories.world import World, shape
from tests.until import until

PRIVATE = "the launch code is 4711"


class Kept(logging.Handler):
    """A handler as an embedding program attaches one."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def events(self, *names: str) -> list[tuple[str, dict[str, object]]]:
        """The events whose names begin so, and their facts without ids and times, which differ each time."""
        varying = ("session", "message", "owner", "ms", "call")
        return [
            (name, {key: fact for key, fact in facts.items() if key not in varying})
            for name, facts in self._all()
            if name.startswith(names)
        ]

    def sessions(self) -> set[object]:
        """The sessions that events name."""
        return {facts["session"] for _, facts in self._all() if "session" in facts}

    def _all(self) -> list[tuple[str, dict[str, object]]]:
        return [(vars(each)["event"], vars(each)["facts"]) for each in self.records if "event" in vars(each)]


@pytest.fixture
def log() -> Iterator[Kept]:
    """Everything that is logged, down to details."""
    handler, logger = Kept(), logging.getLogger("holdfast")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


async def test_a_turn_is_logged_from_claim_to_release(world: World, log: Kept) -> None:
    """With model, agent, how it ended, tokens, cost and calls; each line names the session."""
    steps = (
        Step(Call("act", {"what": PRIVATE}, id="c1"), usage=Usage(input=100, output=10)),
        Step(Say(PRIVATE), usage=Usage(input=120, output=20)),
    )
    async with world.open(*steps) as (hf, _):
        hf.tools.register(Deed(ask=False).tool)
        session = await world.session(hf)
        await hf.sessions.prompt(session, PRIVATE)
        await hf.sessions.wait(session)

    begin = ("turn.begin", {"agent": "build", "model": "scripted/m"})
    counted = {"cached": 0, "written": 0, "reasoning": 0}
    assert log.events("claim.", "turn.", "call.") == [
        ("claim.taken", {"claim": 1}),
        begin,
        ("call.settled", {"tool": "act", "outcome": "completed"}),
        ("turn.end", {"finish": "tool-calls", "input": 100, "output": 10, "cost": "0.00012", **counted}),
        begin,
        ("turn.end", {"finish": "stop", "input": 120, "output": 20, "cost": "0.00016", **counted}),
        ("claim.released", {"how": "done"}),
    ]
    assert log.sessions() == {session}
    assert PRIVATE not in str([record.getMessage() for record in log.records])


async def test_a_retry_says_why_and_how_long(
    world: World, log: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not what the provider wrote, which may quote the prompt."""
    monkeypatch.setattr(retry, "BASE_MS", 1)
    busy = Fail(ProviderError(PRIVATE, kind="overloaded", retryable=True, status=529))
    refused = Fail(ProviderError(PRIVATE, kind="quota", status=402))
    async with world.open(Step(busy), Step(refused)) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, PRIVATE)
        await hf.sessions.wait(session)

    retried = log.events("provider.retry")
    assert [(name, {**facts, "wait_ms": 0}) for name, facts in retried] == [
        ("provider.retry", {"attempt": 1, "kind": "overloaded", "status": 529, "wait_ms": 0})
    ]
    assert log.events("turn.end") == [("turn.end", {"finish": "error", "error": "APIError", "status": 402})]
    assert PRIVATE not in str([record.getMessage() for record in log.records])


async def test_a_prefix_that_moves_is_logged_with_its_reason(world: World, log: Kept) -> None:
    """The operator sees why a provider's cache was lost."""
    async with world.open(Step(Say("a")), Step(Say("b"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        hf.tools.register(Deed().tool)
        await hf.sessions.process(session, "two")

    assert log.events("prefix.moved") == [("prefix.moved", {"reason": "tools", "block": 0})]


async def test_a_recovery_is_logged(world: World, log: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead process left, and how much of it is done again."""
    monkeypatch.setattr("holdfast.runtime.answer.processor.CHECKPOINT_MS", 1)
    machine, gate = Machine(), anyio.Event()
    script = ScriptedProvider(Step(Say("half"), Wait(gate)))
    async with life(world.store, machine, provider=script) as (hf, mortal):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        watch = hf.store.watch()
        with anyio.fail_after(60):
            while "half" not in str(shape((await hf.sessions.messages(session)).messages)):
                await watch.wait()
        watch.close()
        mortal.kill()
    async with life(world.store, machine, provider=ScriptedProvider(Step(Say("rest")))) as (hf, _):
        await hf.sessions.resume(session)
        await hf.sessions.wait(session)

    assert log.events("recovery") == [("recovery", {"calls": 0, "again": 0, "waiting": 0})]


async def test_a_lost_lease_is_logged_with_the_claims_that_go_with_it(world: World, log: Kept) -> None:
    """The process stops what it runs, and says so; what the setting does about it follows."""
    gate = anyio.Event()
    async with world.open(Step(Say("half"), Wait(gate)), Step(Say("rest"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: bool(log.events("turn.begin")))
        inside.coordinator(hf).lease.forget(inside.owner(hf))
        await until(lambda: bool(log.events("claim.released")))

    events = log.events("lease.", "claim.", "session.cut_off", "recovery")
    events[2:4] = sorted(events[2:4])  # Two tasks say so: what ends, and what goes on with it.
    assert events == [
        ("claim.taken", {"claim": 1}),
        ("lease.lost", {}),
        ("claim.lost", {}),
        ("session.cut_off", {"recovery": "auto"}),
        ("claim.taken", {"claim": 2}),
        ("recovery", {"calls": 0, "again": 0, "waiting": 0}),
        ("claim.released", {"how": "done"}),
    ]


async def test_a_compaction_is_logged(world: World, log: Kept) -> None:
    """Whether the user asked for it, and which attempt it was."""
    steps = [Step(Say(text)) for text in (f"a {LONG}", "b", "c", "a summary")]
    async with world.open(*steps) as (hf, _):
        session = await world.session(hf)
        for text in ("one", "two", "three"):
            await hf.sessions.process(session, text)
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)

    assert log.events("compaction.done", "compaction.failed") == [("compaction.done", {"auto": False})]


async def test_a_background_task_that_fails_is_an_error_with_its_place(world: World, log: Kept) -> None:
    """The type of the error and where it was raised; its text is in the warning to the user only."""

    async def break_down() -> None:
        raise ValueError(PRIVATE)

    async with world.open(Step(Say("a"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")
        inside.start_in_background(hf, break_down)
        await until(lambda: bool(log.events("task.failed")))

    task = "test_a_background_task_that_fails_is_an_error_with_its_place.<locals>.break_down"
    [(_, facts)] = log.events("task.failed")
    assert facts == {"task": task, "error": f"ValueError@{__name__}:{break_down.__code__.co_firstlineno + 1}"}


async def test_without_a_handler_events_are_printed_nowhere(
    world: World, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedding program that set up no logging sees none of ours on its terminal, and has no log file."""
    monkeypatch.setattr(retry, "BASE_MS", 1)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    busy = Fail(ProviderError("busy", kind="overloaded", retryable=True))
    async with world.open(Step(busy), Step(Say("a"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "one")

    assert capfd.readouterr() == ("", "")
    assert list(world.home.rglob("*.log*")) == []


class Broken(logging.Handler):
    """A handler of the embedding program that fails."""

    failed = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.failed += 1
        raise RuntimeError("the disk of the log is full")


async def test_a_handler_that_fails_ends_no_work(world: World, log: Kept) -> None:
    """Whatever is logged or warned of: prompts are answered, also after the lease was lost."""
    broken, logger = Broken(), logging.getLogger("holdfast")
    logger.addHandler(broken)
    try:
        async with world.open(Step(Say("one")), Step(Say("two"))) as (hf, _):
            session = await world.session(hf)
            first = await hf.sessions.process(session, "go")
            inside.engine(hf).warn(f"a line for {session}")
            inside.coordinator(hf).lease.forget(inside.owner(hf))
            second = await hf.sessions.process(session, "again")
    finally:
        logger.removeHandler(broken)
    assert [each.parts[1].text for each in (first, second)] == ["one", "two"]
    assert log.events("lease.") == [("lease.lost", {})]
    assert broken.failed == len(log.records)


async def test_a_process_that_lost_its_lease_stops_before_it_logs_that(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs under it must not go on because of a fault in the log."""
    order: list[str] = []

    def warn(room: str, name: str, **facts: object) -> None:
        order.append(name)

    async with world.open(Step(Say("one"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        lease = inside.coordinator(hf).lease
        monkeypatch.setattr(lease, "_lost", lambda: order.append("stopped"))
        monkeypatch.setattr(event, "warn", warn)
        lease.forget(inside.owner(hf))
    assert order == ["stopped", "lease.lost"]
