"""The library over records that say more than we know, or that cannot be read."""

import sqlite3
from pathlib import Path

import pytest

import holdfast
from holdfast.app import Holdfast
from holdfast.errors import RecordCorrupt
from holdfast.schema.part import TextPart
from holdfast.store.batch import Batch, Put
from tests.sessions.filling import ask


async def _write(hf: Holdfast, session: str, part: TextPart, data: bytes) -> None:
    """Put a part's JSON behind the types' back."""
    await hf.store.commit(Batch((Put(session, "part", part.id, data, part.message_id),)))


async def test_a_page_with_unknown_fields_is_read_and_keeps_them(hf: Holdfast, folder: Path) -> None:
    """One record from a newer version does not change how the others are read."""
    session = (await hf.sessions.create(directory=str(folder))).id
    for words in ("one", "two"):
        await ask(hf, session, words)
    plain = await hf.sessions.messages(session)
    part = plain.messages[0].parts[0]
    assert isinstance(part, TextPart)

    await _write(hf, session, part, b'{"type":"text","text":"one","mood":"new"}')
    page = await hf.sessions.messages(session)

    assert page.messages[1] == plain.messages[1]
    assert page.messages[0].info == plain.messages[0].info
    (odd,) = page.messages[0].parts
    assert isinstance(odd, TextPart)
    assert odd.extra is not None
    assert odd.extra.unknown == {"mood": "new"}


async def test_a_page_with_a_part_that_is_none_names_it(hf: Holdfast, folder: Path) -> None:
    """The error says which record, not only that the page failed."""
    session = (await hf.sessions.create(directory=str(folder))).id
    await ask(hf, session, "one")
    part = (await hf.sessions.messages(session)).messages[0].parts[0]
    assert isinstance(part, TextPart)

    await _write(hf, session, part, b'{"type":"text","text":7}')

    with pytest.raises(RecordCorrupt, match=part.id):
        await hf.sessions.messages(session)


async def test_a_session_that_cannot_be_read_hides_no_other(tmp_path: Path, folder: Path) -> None:
    """A list names it beside the others."""
    async with holdfast.open(f"sqlite://{tmp_path}/store") as hf:
        sound = await hf.sessions.create(directory=str(folder))
        damaged = await hf.sessions.create(directory=str(folder))
        db = sqlite3.connect(tmp_path / "store")
        with db:
            db.execute("UPDATE session SET data='{' WHERE id=?", (damaged.id,))
        db.close()

        page = await hf.sessions.list()

    assert page.sessions == (sound,)
    assert page.damaged == (damaged.id,)
