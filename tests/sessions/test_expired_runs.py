"""Sessions of single agent runs, a week after their last use."""

from pathlib import Path

import pytest

from holdfast.app import Holdfast
from holdfast.location.shadow import place
from holdfast.location.shadow.repository import Shadow
from holdfast.person import directories
from holdfast.schema.session import AgentRun
from holdfast.sessions import create
from holdfast.sessions.expired_runs import KEPT_MS, prune
from holdfast.store.batch import Fence
from holdfast.store.host import this_process
from holdfast.store.query import SessionQuery
from holdfast.testing.clock import FakeClock


@pytest.mark.ci
async def test_one_that_runs_or_whose_child_was_used_stays(
    hf: Holdfast, folder: Path, clock: FakeClock
) -> None:
    """A claim of a living process keeps it, and so does any session below it; the rest go, page by page."""
    made = [
        await create.create(hf.sessions.access, directory=folder, agent_run=AgentRun(agent="explore"))
        for _ in range(104)
    ]
    busy, above, gone = made[0].id, made[1].id, {each.id for each in made[2:]}
    await hf.store.register(this_process(hf.host, id="o1", placements=(hf.host.id,)))
    assert isinstance(await hf.store.claim(busy, "o1"), Fence)
    clock.advance(KEPT_MS)
    child = await hf.sessions.create(directory=folder, parent=above)
    await hf.store.renew("o1")

    assert await prune(hf.store, clock, pause_s=0) == len(gone)
    left = await hf.sessions.list(SessionQuery(agent_runs=None))
    assert {each.id for each in left.sessions} == {busy, above, child.id}


async def test_what_was_kept_of_their_files_goes_too(hf: Holdfast, folder: Path, clock: FakeClock) -> None:
    """Trees and contents of an expired run are dropped; those of other sessions stay."""
    run = await create.create(hf.sessions.access, directory=folder, agent_run=AgentRun(agent="explore"))
    other = await hf.sessions.create(directory=folder)
    shadow = Shadow(place.git_dir(directories.data(), "global", folder), folder)
    for session in (run.id, other.id):
        shadow.keep_contents(place.folder_of(session), [session.encode()])
    clock.advance(KEPT_MS)

    assert await prune(hf.store, clock, pause_s=0) == 1
    assert [each.folder for each in shadow.kept()] == [place.folder_of(other.id)]
