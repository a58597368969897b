"""Connections that are cut at random while sessions work: a long test, at random."""

import os
import random
from pathlib import Path

import anyio
import pytest

import holdfast
from holdfast.app import Holdfast
from holdfast.errors import StoreBusy
from holdfast.schema.message import AssistantMessage
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import ScriptedProvider, Step
from tests.store.postgres.proxy import proxied
from tests.store.postgres.server import schema_url
from tests.stories.tools import Deed
from tests.stories.world import World

pytestmark = pytest.mark.long

SEED = int(os.environ.get("CHAOS_SEED", random.randrange(1_000_000)))
TURNS, SESSIONS, MEAN_S = 12, 4, 0.5


async def answered(hf: Holdfast, session: str) -> object:
    """Prompt, and read how the work ended. Who asks is not the runner, and may have to ask again."""
    id = hf.mint.ascending("msg")
    while True:
        try:
            answer = await hf.sessions.process(session, "go", id=id, check=False)
        except StoreBusy:
            continue
        assert isinstance(answer.info, AssistantMessage)
        return answer.info.error


async def test_no_turn_ends_for_a_connection_that_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each turn has two calls and three answers; whatever is cut, each effect happens once, and every turn
    ends as if nothing had happened.
    """
    monkeypatch.setenv("HOME", str(tmp_path))
    world = World(tmp_path, tmp_path)
    world.settings(permission={"*": "allow"})
    print(f"seed {SEED}")  # noqa: T201 - a failure is repeated by it
    done: list[str] = []
    answers: list[object] = []
    async with proxied(schema_url(tmp_path), random.Random(SEED), mean_s=MEAN_S) as (url, proxy):
        opened: list[str] = []

        async def work(name: str) -> None:
            deed = Deed(ask=False)
            deed.done = done
            script = [
                step
                for turn in range(TURNS)
                for step in (
                    Step(Say("first "), Call("act", {"what": f"{name}{turn}a"}, id=f"{turn}a")),
                    Step(Say("second "), Call("act", {"what": f"{name}{turn}b"}, id=f"{turn}b")),
                    Step(*(Say(f"word {n} ") for n in range(30))),
                )
            ]
            with ScriptedProvider(*script) as provider:
                async with holdfast.open(url, provider=provider) as hf:
                    hf.tools.register(deed.tool)
                    session = await world.session(hf)
                    opened.append(session)
                    proxy.calm = len(opened) < SESSIONS
                    answers.extend([await answered(hf, session) for _ in range(TURNS)])

        with anyio.fail_after(120):
            async with anyio.create_task_group() as group:
                for name in "wxyz"[:SESSIONS]:
                    group.start_soon(work, name)
    print(f"{proxy.cut} connections cut, {len(answers)} turns, {len(done)} effects")  # noqa: T201 - the figures

    assert answers == [None] * (TURNS * SESSIONS)
    assert sorted(done) == sorted(
        f"{name}{turn}{call}" for name in "wxyz" for turn in range(TURNS) for call in "ab"
    )
    assert proxy.cut > 20
