"""Export, import, export is the identity, over sessions that Hypothesis makes from the types."""

import tempfile
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.schema import stored, wire
from holdfast.store.batch import Batch, Put
from tests.examples import examples
from tests.schema.strategies import with_unknown
from tests.store.exchange.portable.world import PARENT, exported, for_opencode, msg, opened, prt, taken

HELD: tuple[stored.Kind, ...] = ("message", "part", "prompt", "epoch", "request")
LISTS: tuple[stored.Kind, ...] = ("todo", "diff")


@st.composite
def sessions(draw: st.DrawFn) -> list[Put]:
    """A session with records of every kind between one another, unknown fields included."""

    def value(kind: stored.Kind) -> Any:
        return wire.convert(stored.type_of(kind), draw(with_unknown(stored.type_of(kind)))[1])

    puts = [_put(replace(value("session"), id=PARENT, parent_id=None, share=None), "session")]
    messages: list[Put] = []
    for n in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(HELD))
        if kind == "part":
            if messages:
                parent = draw(st.sampled_from(messages)).id
                puts.append(
                    _put(replace(value("part"), id=prt(n), session_id=PARENT, message_id=parent), "part")
                )
        else:
            id = msg(n) if kind in ("message", "prompt") else f"x{n}"
            puts.append(_put(replace(value(kind), id=id, session_id=PARENT), kind))
            if kind == "message":
                messages.append(puts[-1])
        again: bool = draw(st.booleans())
        if messages and again:
            puts.append(replace(draw(st.sampled_from(messages)), placed=True))
    lists = draw(st.sets(st.sampled_from(LISTS)))
    return [*puts, *(Put(PARENT, kind, PARENT, stored.strip(kind, value(kind))) for kind in lists)]


def _put(value: Any, kind: Any) -> Put:
    parent = value.message_id if kind == "part" else None
    return Put(PARENT, kind, value.id, stored.strip(kind, value), parent, stored.mark(value))


@pytest.mark.ci
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(sessions())
def test_a_session_survives_the_way_into_another_store(puts: list[Put]) -> None:
    """The same bytes come out; a second import changes nothing; OpenCode's form comes back by itself."""
    anyio.run(_there_and_back, puts)


async def _there_and_back(puts: list[Put]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, two, three = [await opened(Path(folder) / name) for name in ("one", "two", "three")]
        try:
            for put in puts:
                await one.commit(Batch((put,)))
            data = await exported(one)
            await taken(two, data)
            assert msgspec.json.decode(await exported(two)) == msgspec.json.decode(data)
            assert not (await taken(two, data)).changed
            theirs = await for_opencode(one)
            await taken(three, theirs)
            assert msgspec.json.decode(await for_opencode(three)) == msgspec.json.decode(theirs)
            copy = (await taken(two, data, as_new=True)).sessions[0]
            assert len(await exported(two, copy)) > 0
        finally:
            for store in (one, two, three):
                await store.close()
