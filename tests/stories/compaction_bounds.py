"""What tests about compaction bounds share."""

from holdfast.app import Holdfast
from holdfast.errors import ProviderError
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Fail, Step

QUOTA = Step(Fail(ProviderError("no credit", kind="quota")))


def says(*said: str) -> list[Step]:
    return [Step(Say(text)) for text in said]


async def compacted(hf: Holdfast, session: str) -> None:
    await hf.sessions.compact(session, force=True)
    await hf.sessions.wait(session)
