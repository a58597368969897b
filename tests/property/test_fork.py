"""A fork's history equals its source's prefix up to ids, and to the end of an answer at work."""

import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.runtime.history import work
from holdfast.schema.message import Message
from holdfast.schema.part import Part, ToolPart
from holdfast.schema.stored import Mark, mark, strip
from holdfast.sessions import open_answer
from holdfast.store.batch import Batch, Put
from holdfast.store.query import MessageQuery
from holdfast.testing.store_contract.build import S1, session
from tests.examples import examples
from tests.schema.strategies import values


async def check(history: list[tuple[Any, list[Any]]], cut: int | None) -> None:
    """Store a history, fork it, and compare what cannot depend on ids."""
    with tempfile.TemporaryDirectory() as folder:
        async with holdfast.open(f"sqlite://{Path(folder)}/s.db") as hf:
            changes = [session()]
            names = []
            for message, contents in history:
                id = hf.mint.ascending("msg")
                names.append(id)
                changes.append(Put(S1, "message", id, strip("message", message), mark=mark(message)))
                for part in contents:
                    name = hf.mint.ascending("prt")
                    changes.append(Put(S1, "part", name, strip("part", part), id, mark(part)))
            await hf.store.commit(Batch(tuple(changes)))
            at = None if cut is None or cut >= len(names) else names[cut]
            forked = await hf.sessions.fork(S1, at)
            source = (await hf.store.messages(MessageQuery(S1))).messages
            copied = (await hf.store.messages(MessageQuery(forked.id))).messages
            kept = source if at is None else source[: names.index(at)]
            opened = open_answer.find(kept)
            kept = tuple(each for each in kept if each.info.mark != Mark.OPEN or each is opened)
            renamed = {old.info.id: new.info.id for old, new in zip(kept, copied, strict=True)}
            for old, new in zip(kept, copied, strict=True):
                if old is not opened:
                    assert plain(old, renamed) == plain(new, {})
                    continue
                parts = [part.value() for part in new.parts]
                info = old.info.value()
                ended = Mark.SUMMARY if info.summary and info.error is None else Mark.NONE
                assert (new.info.mark, len(parts)) == (ended, len(old.parts))
                assert all(work.is_settled(part) for part in parts if isinstance(part, ToolPart))
            assert all(new not in names for new in renamed.values())


def plain(message: Any, renamed: dict[str, str]) -> list[bytes]:
    """The stored JSON of a message and its parts, with references named as in the copy."""
    texts = [message.info.data, *(part.data for part in message.parts)]
    for old, new in renamed.items():
        texts = [text.replace(f'"{old}"'.encode(), f'"{new}"'.encode()) for text in texts]
    return texts


@pytest.mark.ci
@settings(max_examples=examples(40))
@given(
    st.lists(st.tuples(values(Message), st.lists(values(Part), max_size=3)), max_size=5),
    st.none() | st.integers(0, 5),
)
def test_a_fork_equals_its_sources_prefix(history: list[tuple[Any, list[Any]]], cut: int | None) -> None:
    """Whatever messages and parts there are, and wherever it is cut."""
    anyio.run(check, history, cut)
