"""What tests about permissions share."""

import anyio
import anyio.to_thread

from holdfast.app import Holdfast
from holdfast.schema.request import PermissionRequest
from tests.stories.world import shape


async def asked(hf: Holdfast, session: str, count: int = 1) -> list[PermissionRequest]:
    """The questions of a session, once there are so many."""
    watch = hf.store.watch()
    try:
        with anyio.fail_after(10):
            while True:
                found = [
                    each
                    for each in await hf.sessions.requests(session)
                    if isinstance(each, PermissionRequest)
                ]
                if len(found) >= count:
                    return found
                await watch.wait()
    finally:
        watch.close()


def outcomes(world_messages: object) -> list[tuple[str, str]]:
    """The calls: how each ended, and what the model was told."""
    return [
        (part[2], part[3])
        for message in shape(world_messages)  # type: ignore[arg-type]
        for part in message[1]
        if part[0] == "tool"
    ]
