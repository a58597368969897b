"""Several processes on one store, and everything that can happen to them: the driver of the chaos tests.

The model is a function of what it is sent: a prompt `work NAME STEPS` is answered with a call for each step,
then with a word. So every effect has a name that the model asks for once.
"""

import asyncio
import contextlib
import json
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import StoreError
from holdfast.store.base import Store
from holdfast.store.open import open_store
from holdfast.testing.mock_provider import Call, MockProvider, Received, Reply, Say
from holdfast.testing.store_contract.replica import Replica, contents
from tests.stories.processes import Place, calls, left_open, messages, problems

LEASE_MS = 3_000
WORKERS, SESSIONS = 3, 6
QUIET_S = 180.0
"""Only a run that fails waits for so long: a machine may stand still for a minute."""
CHAOS = {"prompt": 70, "interrupt": 7, "resume": 7, "kill": 7, "pause": 4, "trouble": 5}
"""What happens, by how often."""
RACES = {"prompt": 45, "interrupt": 15, "note": 10, "fork": 10, "compact": 10, "rename": 10}
"""No process dies, and nobody resumes: a summary hides from the model which calls it has made."""
FORKS_MAX = 20
_ID = re.compile(r"\b(ses|msg|prt)_\w+")
_WORK = re.compile(r"work (\w+) (\d+)")


class Model(MockProvider):
    """Answers each request by what it says."""

    async def _answer(self, received: Received, *streams: Any) -> bool:
        is_summary = "tools" not in received.json
        self.play(Reply((Say("a summary"),)) if is_summary else reply(received.json["messages"]))
        return await super()._answer(received, *streams)


def reply(sent: list[dict[str, Any]]) -> Reply:
    """The next step of the last work that was asked for."""
    last = max((at for at, each in enumerate(sent) if each["role"] == "user"), default=0)
    asked = _WORK.findall(json.dumps(sent[last]["content"]))
    if not asked:
        return Reply((Say("nothing to do"),))
    name, steps = asked[-1]
    done = sum(bool(each.get("tool_calls")) for each in sent[last + 1 :])
    if done >= int(steps):
        return Reply((Say(f"done {name} " + "word " * 30),), pace_ms=5)
    call = Call("bump", {"what": f"{name}.{done}", "ms": 30}, id=f"call_{name}_{done}_{len(sent)}")
    return Reply((Say(f"step {done} of {name}"), call), pace_ms=5)


class Worker:
    """One process; orders are answered in any order, or never."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, place: Place) -> "Worker":
        """A new process on the store."""
        with place.log.with_suffix(".errors").open("ab") as errors:
            return cls(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "tests.crash.chaos_worker"),
                    *(place.url, str(place.log), str(LEASE_MS)),
                    cwd=Path(__file__).parents[2],
                    env=place.environment,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                )
            )

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            answer = json.loads(line)
            self._answers.pop(answer["number"]).set_result(answer)
        for waiting in self._answers.values():
            waiting.set_result({"error": "dead"})
        self._answers.clear()

    async def ask(self, **order: Any) -> dict[str, Any]:
        """An order and its answer; an error when the process dies before it."""
        self._number += 1
        number = self._number
        assert self.process.stdin is not None
        if self.process.returncode is not None or self._reading.done():
            return {"error": "dead"}
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        with contextlib.suppress(ConnectionError):
            self.process.stdin.write(json.dumps({"number": number, **order}).encode() + b"\n")
        return await answer

    async def kill(self) -> None:
        """As by the out-of-memory killer."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await self._reading

    async def end(self) -> int:
        """Let it close in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(30):
            return await self.process.wait()


class Chaos:
    """A run: what was done, what was acknowledged."""

    def __init__(self, place: Place, mock: Model, seed: int) -> None:
        self.place, self.mock = place, mock
        self.chance = random.Random(seed)
        self.did: Counter[str] = Counter()
        self.faults: list[str] = []
        self.refused: Counter[str] = Counter()
        self.acknowledged: dict[str, list[str]] = {}
        self.forks: set[str] = set()
        self.workers: list[Worker] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._replicas = {limit: Replica() for limit in (1, 7, 50, 1_000)}
        """Followers of the whole store, by the size of their pages."""
        self._following: list[asyncio.Task[None]] = []
        self.store: Store

    async def run(
        self,
        seconds: float,
        trouble: Callable[[random.Random], Awaitable[str | None]],
        weights: Mapping[str, int] = CHAOS,
    ) -> None:
        """Let it rage; `trouble` is what else may happen (to a server), and how that is called."""
        self.store = await open_store(self.place.url)
        room = await Worker.start(self.place)
        self.workers = [room, *[await Worker.start(self.place) for _ in range(WORKERS - 1)]]
        await self._sessions()
        self._following = [
            asyncio.create_task(self._follow(replica, limit)) for limit, replica in self._replicas.items()
        ]
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            await self._something(trouble, weights)
            await asyncio.sleep(self.chance.uniform(0.02, 0.15))

    async def crowd(self, prompts: int) -> None:
        """Two processes prompt one session, all at once."""
        self.store = await open_store(self.place.url)
        self.workers = [await Worker.start(self.place) for _ in range(2)]
        await self._sessions()
        session = next(iter(self.acknowledged))
        async with asyncio.timeout(QUIET_S), asyncio.TaskGroup() as group:
            for number in range(prompts):
                order = "prompt", session, f"work w{number} 1", "queue"
                group.create_task(self._order(self.workers[number % 2], *order))
        async with asyncio.timeout(QUIET_S):
            await self.workers[0].ask(do="resume", session=session)

    async def _sessions(self) -> None:
        import holdfast

        async with holdfast.open(self.place.url) as hf:
            for _ in range(SESSIONS):
                made = await hf.sessions.create(directory=self.place.project, title="chaos")
                self.acknowledged[made.id] = []

    async def _something(
        self, trouble: Callable[[random.Random], Awaitable[str | None]], weights: Mapping[str, int]
    ) -> None:
        at = self.chance.randrange(len(self.workers))
        worker, session = self.workers[at], self.chance.choice(list(self.acknowledged))
        worker = self.workers[at] = await self._living(worker)
        (what,) = self.chance.choices(list(weights), list(weights.values()))
        if what == "kill":
            await worker.kill()
            self.workers[at] = await Worker.start(self.place)
        elif what == "pause":
            worker.process.send_signal(signal.SIGSTOP)
            self._later(self._go_on(worker, self.chance.uniform(0.2, 2 * LEASE_MS / 1_000)))
        elif what == "trouble":
            what = await trouble(self.chance) or "prompt"
        else:
            name = f"w{self.did.total()}"
            text = f"work {name} {self.chance.randrange(4)}"
            # What a fork owes it does before a prompt that queues: the same effects as its source, rightly.
            delivery = self.chance.choice(("steer", "queue") if session not in self.forks else ("steer",))
            self._later(self._order(worker, what, session, text, delivery))
        self.did[what] += 1

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _go_on(self, worker: Worker, seconds: float) -> None:
        await asyncio.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            worker.process.send_signal(signal.SIGCONT)

    async def _order(self, worker: Worker, what: str, session: str, text: str, delivery: str) -> None:
        answer = await worker.ask(do=what, session=session, text=text, delivery=delivery)
        if "error" in answer:
            self.refused[_ID.sub(r"\1_…", answer["error"])[:160]] += 1
        elif what in ("prompt", "note"):
            self.acknowledged[session].append(answer["ok"])
        elif what == "fork" and len(self.acknowledged) < SESSIONS + FORKS_MAX:
            self.forks.add(answer["ok"])
            self.acknowledged[answer["ok"]] = []

    async def _follow(self, replica: Replica, limit: int) -> None:
        """Follow the whole store from its beginning."""
        watch = self.store.watch()
        try:
            while True:
                with contextlib.suppress(StoreError):
                    await replica.catch_up(self.store, limit=limit)
                await watch.wait()
        finally:
            watch.close()

    async def rest(self) -> None:
        """Wait until every order is answered and no session works; what queued before an interrupt waits."""
        async with asyncio.timeout(QUIET_S):
            await asyncio.gather(*self._tasks)
            while any([await self._works(session) for session in self.acknowledged]):
                await asyncio.sleep(0.1)

    async def settle(self) -> None:
        """Let the dust settle: sessions are resumed by a fresh process until nothing is open."""
        for worker in self.workers:
            with contextlib.suppress(ProcessLookupError):
                worker.process.send_signal(signal.SIGCONT)
            await worker.kill()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        last = await Worker.start(self.place)
        unfinished, answers = list[str](), list[dict[str, Any]]()
        try:
            async with asyncio.timeout(QUIET_S):
                while unfinished := [each for each in self.acknowledged if await self._is_unfinished(each)]:
                    last = await self._living(last)
                    asked = [last.ask(do="resume", session=each) for each in unfinished]
                    answers = await asyncio.gather(*asked)
        except TimeoutError:
            raise AssertionError(f"not in order: {unfinished}, whose `resume` said {answers}") from None
        assert await last.end() == 0
        for task in self._following:
            assert not task.done(), task.exception()
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)

    async def _living(self, worker: Worker) -> Worker:
        """The worker, or another one if the server went away just when it was opened."""
        if worker.process.returncode is None:
            return worker
        errors = self.place.log.with_suffix(".errors").read_text()
        assert "StoreBusy" in errors, errors[-2_000:]
        self.did["died at opening"] += 1
        return await Worker.start(self.place)

    async def _works(self, session: str) -> bool:
        record = await self.store.session(session)
        return record is not None and record.busy

    async def _is_unfinished(self, session: str) -> bool:
        waiting = [each for each in await self.store.select("prompt", session=session) if each.mark == 1]
        return bool(waiting) or bool(left_open(await messages(self.store, session)))

    async def check(self) -> str:
        """Every law; answers the figures."""
        lost, settled = [], 0
        for session, prompts in self.acknowledged.items():
            history = await messages(self.store, session)
            known = {each.info.id for each in history}
            self.faults += [
                f"{error.name}: {error}"
                for each in history
                if (error := getattr(each.info, "error", None)) is not None
            ]
            lost += [prompt for prompt in prompts if prompt not in known]
            settled += len(calls(history))
        effects = Counter(self.place.log.read_text().splitlines())
        assert lost == []
        assert [name for name, count in effects.items() if count > 1] == []
        assert [found for request in self.mock.requests if (found := problems(request))] == []
        expected = await contents(self.store)
        for replica in self._replicas.values():
            for _ in range(2):  # The rest of a batch tells nothing of what came after its beginning.
                await replica.catch_up(self.store)
            shown = ("session", "message", "part")
            followed = {key: each for key, each in replica.records.items() if key[1] in shown}
            differ = [key for key in {*followed, *expected} if followed.get(key) != expected.get(key)]
            assert not differ, [(key, followed.get(key), expected.get(key)) for key in differ][:5]
        assert (await self.store.examine()).findings == ()
        await self.store.close()
        asked = sum(map(len, self.acknowledged.values()))
        delivered = sum(replica.delivered for replica in self._replicas.values())
        return (
            f"{dict(self.did)}; {asked} acknowledged prompts, {effects.total()} effects, {settled} calls, "
            f"{len(self.mock.requests)} requests, {delivered} changes followed: 0 lost, "
            f"0 doubled, 0 unsettled; refused: {dict(self.refused)}"
        )
