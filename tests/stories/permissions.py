"""What tests about permissions share."""

from typing import cast

from holdfast.app import Holdfast
from holdfast.schema.request import PermissionRequest
from tests.stories.world import shape
from tests.until import until


async def asked(hf: Holdfast, session: str, count: int = 1) -> list[PermissionRequest]:
    """The questions of a session, once there are so many."""

    async def look() -> list[PermissionRequest]:
        found = [each for each in await hf.sessions.requests(session) if isinstance(each, PermissionRequest)]
        return found if len(found) >= count else []

    return cast("list[PermissionRequest]", await until(look, store=hf.store))


def outcomes(world_messages: object) -> list[tuple[str, str]]:
    """The calls: how each ended, and what the model was told."""
    return [
        (part[2], part[3])
        for message in shape(world_messages)  # type: ignore[arg-type]
        for part in message[1]
        if part[0] == "tool"
    ]
