"""An epoch that cannot be read: the prompt's answer names the damage, and what to do about it."""

from holdfast.schema.fault import UnknownFault
from holdfast.schema.message import AssistantMessage
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Put
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step
from tests.stories.world import World


async def test_a_damaged_epoch_is_named_and_leads_to_doctor(world: World) -> None:
    """In the process that wrote it and in the next one; nothing is asked of the model."""
    async with world.open(Step(Say("one"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (record,) = await hf.store.select("epoch", session=session)
        await hf.store.commit(Batch((Put(session, "epoch", record.id, b"{}", mark=Mark.OPEN),)))
    async with world.open() as (hf, _):
        for words in ("two", "three"):
            answer = await hf.sessions.process(session, words)
            assert isinstance(answer.info, AssistantMessage)
            assert isinstance(answer.info.error, UnknownFault)
            message = answer.info.error.data.message
            assert message.startswith(f"epoch {record.id} of session {session} cannot be read: ")
            assert message.endswith("run `holdfast doctor`")
