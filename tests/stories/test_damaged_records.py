"""A record that cannot be read: whoever prompts is told its name, and what to do about it."""

import pytest

from holdfast.errors import RecordCorrupt
from holdfast.schema import stored
from holdfast.schema.fault import UnknownFault
from holdfast.schema.message import AssistantMessage
from holdfast.schema.stored import Mark
from holdfast.store.batch import Batch, Put
from holdfast.store.query import MessageQuery
from holdfast.testing.mock_provider.script import Say
from holdfast.testing.scripted_provider import Step
from tests.stories.world import World, shape


async def test_a_damaged_epoch_is_named_and_leads_to_doctor(world: World) -> None:
    """In the process that wrote it and in the next one; nothing is asked of the model."""
    async with world.open(Step(Say("one"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (record,) = await hf.store.select("epoch", session=session)
        await hf.store.commit(Batch((Put(session, "epoch", record.id, b"{}", mark=Mark.OPEN),)))
    async with world.open() as (hf, _):
        for words in ("two", "three"):
            answer = await hf.sessions.process(session, words, check=False)
            assert isinstance(answer.info, AssistantMessage)
            assert isinstance(answer.info.error, UnknownFault)
            message = answer.info.error.data.message
            assert message.startswith(f"epoch {record.id} of session {session} cannot be read: ")
            assert message.endswith("run `holdfast doctor`")


async def test_a_damaged_message_that_comes_in_is_named_by_each_prompt(world: World) -> None:
    """The history of the session is held when another process writes it; nothing is asked of the model. Once
    it is mended, the work goes on.
    """
    damaged = "msg_ffff0000000100000000000000"
    async with world.open(Step(Say("one")), Step(Say("all of it"))) as (hf, _):
        session = await world.session(hf)
        answer = await hf.sessions.process(session, "go")
        (record,) = [each.info for each in (await hf.store.messages(MessageQuery(session))).messages][1:]
        whole = stored.strip("message", answer.info)
        await hf.store.commit(Batch((Put(session, "message", damaged, b'{"role":"assistant","time":5}'),)))
        for words in ("two", "three"):
            with pytest.raises(
                RecordCorrupt, match=f"^message {damaged} of session {session} cannot be read"
            ):
                await hf.sessions.process(session, words)
        await hf.store.commit(Batch((Put(session, "message", damaged, whole, mark=record.mark),)))
        answer = await hf.sessions.process(session, "four")
    assert shape((answer,)) == [("assistant", ["step-start", ("text", "all of it"), ("step-finish", "stop")])]
