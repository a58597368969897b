"""Erases sessions, and what is kept for them outside of the store: trees and contents of files, long outputs.

What must stay true: what another session names stays, a fork above all, and while one is too damaged to tell
what it names, everything does; what cannot be removed now is found by `doctor`, or swept when its time is
over.
"""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Final

import anyio.to_thread
import msgspec

from holdfast.errors import ContextError
from holdfast.person import directories
from holdfast.schema import typed
from holdfast.schema.session import FORK, SOURCES
from holdfast.store.base import Store
from holdfast.store.query import LIMIT_MAX, MessageQuery, SessionQuery
from holdfast.store.record import SessionRecord

_OUTPUT: Final = re.compile(rb"tool-output/(tool_[0-9A-Za-z]{20,60})")


class _Head(msgspec.Struct, frozen=True):
    metadata: dict[str, object] | None = None


_head = typed.decoder(_Head)


class Traces(msgspec.Struct, frozen=True):
    """What some sessions have outside of the store."""

    sessions: frozenset[str]
    """The sessions, and those that they were forked from."""
    outputs: frozenset[str]
    """The names of outputs that were kept."""


async def traces(store: Store, sessions: Sequence[str]) -> Traces:
    """What some sessions have outside of the store; asked before they are erased."""
    known: set[str] = set()
    outputs: set[str] = set()
    for id in sessions:
        record = await store.session(id)
        if record is not None:
            known |= {id, *(_sources(record) or ())}
            outputs |= await _outputs(store, id)
    return Traces(frozenset(known), frozenset(outputs))


def together(gone: Iterable[Traces]) -> Traces:
    """All of them as one."""
    every = list(gone)
    return Traces(
        frozenset().union(*(each.sessions for each in every)),
        frozenset().union(*(each.outputs for each in every)),
    )


async def forget(store: Store, gone: Traces) -> None:
    """Remove what erased sessions had outside of the store, unless others name it."""
    with suppress(ContextError):  # A user without a home has nothing there.
        if await anyio.to_thread.run_sync(_is_kept, gone):
            await _forget_unnamed(store, gone)


async def _forget_unnamed(store: Store, gone: Traces) -> None:
    named: set[str] = set()
    outputs = set(gone.outputs)
    async for id, sources in _every(store):
        if sources is None:
            return  # It may have been forked from any of them.
        named |= sources
        if outputs and sources & gone.sessions:
            outputs -= await _outputs(store, id)
    await anyio.to_thread.run_sync(_forget, gone.sessions - named, outputs)


def _is_kept(gone: Traces) -> bool:
    from holdfast.location.shadow import stored

    return bool(gone.outputs) or stored.holds(directories.data(), gone.sessions)


def _forget(sessions: frozenset[str], outputs: set[str]) -> None:
    from holdfast.location.shadow import stored

    data = directories.data()
    stored.forget(data, sessions)
    for name in outputs:
        with suppress(OSError):
            (data / "tool-output" / name).unlink(missing_ok=True)


async def named(store: Store) -> set[str]:
    """The sessions of a store, damaged ones too, and those that they were forked from, whether they are
    there or not.
    """
    return {named async for id, sources in _every(store) for named in (sources or {id})}


async def _every(store: Store) -> AsyncIterator[tuple[str, set[str] | None]]:
    """Every session, with itself and those that it was forked from; None where it is too damaged to tell."""
    cursor = None
    while True:
        query = SessionQuery(archived=None, agent_runs=None, limit=LIMIT_MAX, cursor=cursor)
        page = await store.sessions(query)
        for record in page.sessions:
            yield record.id, _sources(record)
        for id in page.damaged:
            yield id, None
        if (cursor := page.next) is None:
            return


def _sources(record: SessionRecord) -> set[str] | None:
    """A session, and those that it was forked from, whether they are there or not; None if it cannot be
    read.
    """
    try:
        origin = (_head.decode(record.data).metadata or {}).get(FORK)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    found = {record.id}
    if isinstance(origin, dict):
        found |= {str(each) for each in (origin.get("sessionID"), *(origin.get(SOURCES) or ()))}
    return found


async def _outputs(store: Store, session: str) -> set[str]:
    page = await store.messages(MessageQuery(session, damaged=True, reverted=True))
    return {
        name.decode()
        for message in page.messages
        for part in message.parts
        for name in _OUTPUT.findall(part.data)
    }
