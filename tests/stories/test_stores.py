"""The engine on every store: what is kept from turn to turn is what the store holds."""

from pathlib import Path

import pytest

from holdfast.runtime.history.session_history import SessionHistory
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.store.postgres.server import schema_url
from tests.stories import inside
from tests.stories.tools import Deed
from tests.stories.world import World


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["sqlite", "file", "postgresql"])
async def test_turns_calls_a_compaction_and_a_fork(world: World, tmp_path: Path, kind: str) -> None:
    """A history that was caught up with equals one that was read anew, at every point."""
    world.store = {
        "sqlite": f"sqlite://{tmp_path}/story.db",
        "file": f"file://{tmp_path}/tree",
        "postgresql": schema_url(tmp_path) if kind == "postgresql" else "",
    }[kind]
    world.settings(permission={"*": "allow"})
    deed = Deed(ask=False)
    steps: list[Step] = []
    for number in range(3):
        steps += [Step(Call("act", {"what": str(number)}, id=f"c{number}")), Step(Say("ok"))]
    async with world.open(*steps, Step(Say("SUMMARY")), Step(Say("after")), Step(Say("forked"))) as (
        hf,
        script,
    ):
        hf.tools.register(deed.tool)
        session = await world.session(hf)
        kept: SessionHistory | None = None
        for number in range(3):
            await hf.sessions.process(session, f"wish {number}")
            kept = inside.history(hf, session)
            assert await kept.read() == await SessionHistory(hf.store, session).read()
        assert kept is not None
        await hf.sessions.compact(session, force=True)
        await hf.sessions.wait(session)
        assert await kept.read() == await SessionHistory(hf.store, session).read()
        await hf.sessions.process(session, "wish 3")
        assert await kept.read() == await SessionHistory(hf.store, session).read()
        forked = (await hf.sessions.fork(session)).id
        await hf.sessions.process(forked, "and on")
        view = await hf.sessions.context(forked)
    assert deed.done == ["0", "1", "2"]
    assert "SUMMARY" in str(script.requests[-1].messages)
    assert [move.reason for move in view.moves] == []
