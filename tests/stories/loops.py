"""What tests about loops share."""

from typing import Any

from msgspec.structs import force_setattr, replace

from holdfast.app import Holdfast
from holdfast.schema.request import PermissionRequest
from holdfast.testing.mock_provider.script import Call
from holdfast.testing.scripted_provider import Step
from tests.stories import inside
from tests.stories.permissions import asked
from tests.stories.tools import Deed
from tests.stories.world import Attached, World

SAME = {"what": "x"}


def repeats(*ids: str) -> list[Step]:
    return [Step(Call("act", SAME, id=id)) for id in ids]


def impatient(hf: Holdfast) -> None:
    """Wait for a person for a moment only."""
    engine = inside.engine(hf)
    force_setattr(engine, "limits", replace(engine.limits, answer_wait_ms=20))


async def parked(world: World, deed: Deed, **settings: Any) -> tuple[str, PermissionRequest]:
    """A session whose third identical call waits for a person, and whose process is gone."""
    world.settings(**{"permission": {"act": "allow"}, **settings})
    async with world.open(*repeats("c1", "c2", "c3"), presence=Attached()) as (hf, _):
        hf.tools.register(deed.tool)
        impatient(hf)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (question,) = await asked(hf, session)
    assert (question.permission, deed.done) == ("doom_loop", ["x", "x"])
    return session, question
