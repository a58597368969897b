"""A group of batches as the arguments of the commit functions: a few flat arrays (see `sql/commit.sql`).

A batch is checked and turned into a `Draft` alone, before it joins a group, so that one that cannot be
written fails alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema.ids import body as id_body
from holdfast.schema.stored import Kind, Mark
from holdfast.store.batch import (
    Batch,
    Copies,
    Expectation,
    Put,
    Receipt,
    Rising,
    Settled,
    Unchanged,
    Unclaimed,
)
from holdfast.store.batch import Change as BatchChange
from holdfast.store.check import check_batch, check_kind
from holdfast.store.columns import KIND_NUMBER, columns_of
from holdfast.store.search_text import searchable, words_of

SESSION, PART, SHARE = KIND_NUMBER["session"], KIND_NUMBER["part"], KIND_NUMBER["share"]
_OF_SESSION = range(SESSION + 1, SHARE + 1)
WORDS_BYTES_MAX = 600_000
"""A tsvector holds at most a megabyte."""

Text = str | None
Change = tuple[int, str, str, Text, Text, Text, Text]
"""Bits, session, id, parent, columns, words, data."""
Ask = tuple[int, tuple[str, Text, Text], int]
Source = tuple[Text, int | None, int | None]
"""Session, position and number of an original."""
_NO_SOURCE: Source = (None, None, None)


class Draft(msgspec.Struct, frozen=True):
    """A batch, ready to be written."""

    names: list[str]
    """Every session it touches or asks about, and the parents of those that it makes."""
    makes: list[str]
    """The sessions that it may create, or expects to be absent."""
    changes: list[Change]
    asks: list[Ask]
    fence: tuple[Text, Text]
    number: int | None
    release: bool
    judges: bool
    """Whether it asks about other owners, some of whom may be known here to be gone."""
    low: Text
    top: Text
    """The least and the greatest id body of a batch that may be new records only (see `append`)."""
    sources: list[Source]
    """Of each change the original that it copies; empty when it copies none."""
    counts: list[int] | None
    """How many rows each change of the batch stands for, unless one each."""

    def receipt(self, numbers: Sequence[int]) -> Receipt:
        """The answer to the batch, from the number of each row."""
        if self.counts is None:
            return Receipt(tuple(numbers))
        return Receipt(tuple(numbers[end - 1] for end in accumulate(self.counts)))


def draft(batch: Batch) -> Draft:
    """Check a batch and lay it out."""
    check_batch(batch)
    names, makes = batch.sessions(), list[str]()
    fresh = _new_records(batch)
    changes: list[Change] = []
    sources: list[Source] = []
    copies = [change for change in batch.changes if isinstance(change, Copies)]
    for change in batch.changes:
        at = len(changes)
        if isinstance(change, Copies):
            changes += _copied(change, fresh[0][at:] if fresh else None)
            sources += [(change.source, each.position, each.seq) for each in change.originals]
            continue
        sources.append(_NO_SOURCE)
        kind = KIND_NUMBER[change.kind]
        if not isinstance(change, Put):
            changes.append((kind << 4, change.session, change.id, None, None, None, None))
            continue
        columns = words = None
        if kind == SESSION:
            columns, parent = _columns(change)
            names += [parent] if parent is not None else []
        if kind == SESSION or kind > SHARE:
            makes.append(change.session)
        # A part that is still written is not searched: its words would be indexed again with each checkpoint.
        if kind == SESSION or (kind == PART and change.mark is not Mark.OPEN):
            words = _words(searchable(change.kind, change.data))
        bits = 1 | change.placed << 1 | change.mark << 2 | kind << 4 | (fresh[0][at] << 8 if fresh else 0)
        changes.append((bits, change.session, change.id, change.parent, columns, words, _data(change)))
    makes += [each.session for each in batch.expect if isinstance(each, Unchanged) and not each.seq]
    fence = batch.fence
    return Draft(
        names=names,
        makes=makes,
        changes=changes,
        asks=[_ask(each) for each in (*batch.expect, *(Rising(each.session) for each in copies))],
        fence=(None, None) if fence is None else (fence.session, fence.owner),
        number=None if fence is None else fence.number,
        release=batch.release,
        judges=any(isinstance(each, Unclaimed) for each in batch.expect),
        low=min(fresh[1], default="") if fresh else None,
        top=max(fresh[1], default="") if fresh else None,
        sources=sources if copies else [],
        counts=[len(each.ids) if isinstance(each, Copies) else 1 for each in batch.changes]
        if copies
        else None,
    )


def _copied(copies: Copies, places: Sequence[int] | None) -> Iterator[Change]:
    """Copies as changes: without content, unless it differs from the original's."""
    message: Text = None
    for at, (original, id) in enumerate(zip(copies.originals, copies.ids, strict=True)):
        kind = KIND_NUMBER[original.kind]
        if kind != PART:
            message = id
        data = copies.changed.get(original.position)
        words = None
        if data is not None and kind == PART and original.mark is not Mark.OPEN:
            words = _words(searchable(original.kind, data))
        bits = 1 | original.mark << 2 | kind << 4 | (places[at] << 8 if places else 0)
        parent = message if kind == PART else None
        yield bits, copies.session, id, parent, None, words, None if data is None else data.decode()


def _new_records(batch: Batch) -> tuple[list[int], list[str]] | None:
    """Of each change the place of its message among them (0 for none), and the bodies of the ids.

    None unless the batch may be new records of one session, parts after their messages, perhaps with the
    session itself before them: such a batch is written in one statement. Whether they are new, the server
    knows.
    """
    changes = batch.changes
    begin = 1 if changes and isinstance(changes[0], Put) and changes[0].kind == "session" else 0
    if len(changes) < begin + 1 or len({each.source for each in changes if isinstance(each, Copies)}) > 1:
        return None
    session, places, bodies = changes[0].session, [0] * begin, list[str]()
    messages: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    for number, name in enumerate(_names(changes[begin:]), 1):
        if name is None or name[0] != session:
            return None
        _, kind, id, parent = name
        if (kind, id) in seen or KIND_NUMBER[kind] not in _OF_SESSION:
            return None
        seen.add((kind, id))
        place = messages.get(parent, 0) if parent is not None else 0
        if kind == "part" and not place:
            return None
        if kind == "message":
            messages[id] = number
        if kind in ("message", "part"):
            bodies.append(id_body(id))
        places.append(place)
    if len(places) < begin + 2:
        return None
    if any(isinstance(each, Rising) for each in batch.expect) and bodies != sorted(set(bodies)):
        return None
    return places, bodies


def _names(changes: Iterable[BatchChange]) -> Iterator[tuple[str, Kind, str, Text] | None]:
    """Session, kind, id and parent of each record that is written; None for what writes no new one."""
    for change in changes:
        if isinstance(change, Copies):
            message: Text = None
            for original, id in zip(change.originals, change.ids, strict=True):
                if original.kind == "message":
                    yield change.session, "message", id, None
                    message = id
                else:
                    yield change.session, original.kind, id, message
        elif isinstance(change, Put) and not change.placed:
            yield change.session, change.kind, change.id, change.parent
        else:
            yield None


def _data(put: Put) -> str:
    try:
        data = put.data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{put.kind} {put.id} is not UTF-8") from error
    if "\0" in data:
        raise InvalidInput(f"{put.kind} {put.id} is not JSON: it holds a zero byte")
    return data


def _words(text: str) -> str | None:
    """The words of a record, each once, as many as the index takes."""
    joined = " ".join(set(words_of(text)))
    if len(joined) * 4 > WORDS_BYTES_MAX:
        joined = joined.encode()[:WORDS_BYTES_MAX].decode(errors="ignore").strip()
    return joined or None


def _columns(put: Put) -> tuple[str, str | None]:
    """The columns of a session as JSON, without what the server's text type cannot hold."""
    found = columns_of(put.id, put.data)
    values = {name: _holdable(getattr(found, name)) for name in found.__struct_fields__}
    values["folded"] = _holdable(found.title.casefold())
    try:
        return msgspec.json.encode(values).decode(), found.parent
    except UnicodeEncodeError as error:
        raise InvalidInput(f"session {put.id} holds text that is not Unicode") from error


def _holdable(value: object) -> object:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def kind_number(kind: Kind) -> int:
    """The number that stands for a kind in the tables."""
    check_kind(kind)
    return KIND_NUMBER[kind]


def _ask(expectation: Expectation) -> Ask:
    match expectation:
        case Unchanged(session=session, kind=kind, id=id, seq=seq):
            return kind_number(kind) << 2, (session, kind, id), seq
        case Settled(session=session, kind=kind):
            return 1 | kind_number(kind) << 2, (session, kind, None), 0
        case Unclaimed(session=session):
            return 2, (session, None, None), 0
        case Rising(session=session):
            return 3, (session, None, None), 0


def arguments(drafts: list[Draft], gone: list[str], now_ms: int | None) -> list[object]:
    """The arguments of one call, in the order of the functions. What no batch has is None."""
    changes = drafts[0].changes if len(drafts) == 1 else list(chain(*(each.changes for each in drafts)))
    asks = list(chain(*(each.asks for each in drafts)))
    fenced = any(each.number is not None for each in drafts)
    return [
        sorted(set(chain(*(each.names for each in drafts)))),
        list(set(chain(*(each.makes for each in drafts)))) or None,
        list(accumulate(len(each.changes) for each in drafts)),
        *(zip(*changes, strict=True) if changes else [[]] * 7),
        *(_asked(drafts, asks) if asks else [None] * 4),
        *(_fences(drafts) if fenced else [None] * 3),
        gone,
        now_ms,
        *_sources(drafts),
        *((drafts[0].low, drafts[0].top) if len(drafts) == 1 else ()),
    ]


def _asked(drafts: list[Draft], asks: list[Ask]) -> list[object]:
    return [
        list(accumulate(len(each.asks) for each in drafts)),
        [bits for bits, _, _ in asks],
        [text for _, texts, _ in asks for text in texts],
        [seq for _, _, seq in asks],
    ]


def _sources(drafts: list[Draft]) -> Iterable[object]:
    if not any(each.sources for each in drafts):
        return [None] * 3
    sources = [source for each in drafts for source in (each.sources or [_NO_SOURCE] * len(each.changes))]
    return zip(*sources, strict=True)


def _fences(drafts: list[Draft]) -> list[object]:
    return [
        [text for each in drafts for text in each.fence],
        [each.number for each in drafts],
        [each.release for each in drafts],
    ]
