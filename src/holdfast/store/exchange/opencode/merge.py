"""Writes a drafted session: all of it, or what the store does not have of it yet.

A session that is already here keeps what it has; messages and parts that are new are added at its end, and
its totals grow by what they cost. Each commit leaves the totals right for what has been written so far, so
that an import that was cut off is simply run again.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from holdfast.errors import CallerError
from holdfast.schema import stored, title, usage
from holdfast.schema.part import Part, StepFinishPart
from holdfast.schema.session import Session
from holdfast.schema.stored import Kind
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import Num
from holdfast.store.base import Store
from holdfast.store.batch import Batch, Expectation, Put, Unchanged, Unclaimed
from holdfast.store.exchange.opencode.draft import Draft, Turn, total
from holdfast.store.exchange.portable.import_file import without_parent
from holdfast.store.exchange.portable.report import Tally
from holdfast.store.put import put, put_list
from holdfast.store.query import MessageQuery
from holdfast.store.record import SessionRecord

BATCH_RECORDS_MAX = 5_000


class _Step(msgspec.Struct):
    """Records that go into one commit, and what the messages in it cost."""

    puts: list[Put]
    cost: Num = 0
    tokens: Tokens = usage.ZERO


async def merge(store: Store, draft: Draft, where: str, tally: Tally) -> None:
    """Bring one session over. What the store refuses is reported, and does not end the import."""
    id = draft.session.id
    try:
        here = await store.session(id)
        if here is None:
            await _create(store, draft, tally)
        else:
            await _grow(store, draft, here, where, tally)
    except CallerError as error:
        tally.skip("session", f"session {id}", where, str(error))


async def _create(store: Store, draft: Draft, tally: Tally) -> None:
    session = draft.session
    if session.parent_id is not None and await store.session(session.parent_id) is None:
        tally.note(
            f"session {session.id}: its parent {session.parent_id} did not come over; "
            "it stands in metadata.parent and the session has none"
        )
        session = without_parent(session)
    steps = list(_steps(draft.turns, _lists(draft), _Step([])))
    # The row's totals may differ from the sum of the steps: what is over counts from the beginning.
    cost, tokens = total(draft.turns)
    over = usage.subtract(session.tokens or usage.ZERO, tokens)
    before = replace(session, cost=(session.cost or 0) - cost, tokens=over)
    await _write(store, session, before, steps, (Unchanged(session.id, "session", session.id, 0),))
    tally.new("session")
    _count_new(tally, steps)


async def _grow(store: Store, draft: Draft, here: SessionRecord, where: str, tally: Tally) -> None:
    id = draft.session.id
    if here.busy:
        tally.skip("session", f"session {id}", where, "it is running here; import again when it is idle")
        return
    page = await store.messages(MessageQuery(id, reverted=True))
    had = {message.info.id: {part.id for part in message.parts} for message in page.messages}
    owners = {part: message for message, parts in had.items() for part in parts}
    new: list[Turn] = []
    fresh: list[Part] = []
    for turn in draft.turns:
        if turn.message.id not in had:
            new.append(turn)
            continue
        tally.unchanged("message")
        for part in turn.parts:
            if part.id not in owners:
                fresh.append(part)
            else:
                tally.unchanged("part")
    lists, replaced = await _changed_lists(store, draft, tally, moved_on=bool(new or fresh))
    late = _Step([put(part) for part in fresh])
    for part in fresh:
        if isinstance(part, StepFinishPart):
            late.cost, late.tokens = late.cost + part.cost, usage.add(late.tokens, part.tokens)
    cost, tokens = total(new)
    cost, tokens = cost + late.cost, usage.add(tokens, late.tokens)
    steps = list(_steps(new, lists, late))
    if not any(step.puts for step in steps):
        tally.unchanged("session")
        return
    stored_session = stored.load("session", here.data, id=id)
    assert isinstance(stored_session, Session)
    before = _follow(stored_session, draft.session)
    grown = replace(usage.add(before.tokens or usage.ZERO, tokens), total=None)
    after = replace(before, cost=(before.cost or 0) + cost, tokens=grown)
    await _write(store, after, before, steps, (Unchanged(id, "session", id, here.seq),))
    tally.updated("session")
    _count_new(tally, steps, replaced)


async def _changed_lists(
    store: Store, draft: Draft, tally: Tally, *, moved_on: bool
) -> tuple[list[Put], frozenset[Kind]]:
    """The lists to write: those we lack and, if the source has moved on, those that differ from ours."""
    lists: list[Put] = []
    replaced: set[Kind] = set()
    for change in _lists(draft):
        here = await store.get(change.session, change.kind, change.id)
        if here is not None and (
            not moved_on or msgspec.json.decode(here.data) == msgspec.json.decode(change.data)
        ):
            tally.unchanged(change.kind)
            continue
        lists.append(change)
        if here is not None:
            replaced.add(change.kind)
    return lists, frozenset(replaced)


def _follow(here: Session, source: Session) -> Session:
    """The session as we have it, with the time and, if it was not renamed here, the title of the source."""
    name = source.title if title.is_default(here.title) and source.title else here.title
    updated = max(here.time.updated, source.time.updated)
    return replace(here, title=name, time=replace(here.time, updated=updated))


async def _write(
    store: Store, after: Session, before: Session, steps: Sequence[_Step], expect: tuple[Expectation, ...]
) -> None:
    """Commit the steps one by one, each with the session's totals so far; the last with `after` itself."""
    cost, tokens = before.cost or 0, before.tokens or usage.ZERO
    for number, step in enumerate(steps):
        cost, tokens = cost + step.cost, usage.add(tokens, step.tokens)
        session = replace(after, cost=cost, tokens=replace(tokens, total=None))
        if number == len(steps) - 1:
            session = after
        receipt = await store.commit(Batch((put(session), *step.puts), (*expect, Unclaimed(session.id))))
        expect = (Unchanged(session.id, "session", session.id, receipt.numbers[0]),)


def _steps(turns: Sequence[Turn], lists: Sequence[Put], step: _Step) -> Iterator[_Step]:
    """The first step and those after it: commits of a bounded size, each message whole in one of them."""
    for turn in turns:
        puts = [put(turn.message), *map(put, turn.parts)]
        if step.puts and len(step.puts) + len(puts) > BATCH_RECORDS_MAX:
            yield step
            step = _Step([])
        step.puts.extend(puts)
        cost, tokens = turn.usage()
        step.cost, step.tokens = step.cost + cost, usage.add(step.tokens, tokens)
    step.puts.extend(lists)
    yield step


def _lists(draft: Draft) -> list[Put]:
    id = draft.session.id
    lists: list[Put] = []
    if draft.todos:
        lists.append(put_list(id, "todo", draft.todos))
    if draft.diffs:
        lists.append(put_list(id, "diff", draft.diffs))
    return lists


def _count_new(tally: Tally, steps: Sequence[_Step], replaced: frozenset[Kind] = frozenset()) -> None:
    for step in steps:
        for change in step.puts:
            (tally.updated if change.kind in replaced else tally.new)(change.kind)
