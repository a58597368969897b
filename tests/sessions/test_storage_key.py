"""Keys of the seeds' storage: which record each names, and what is none."""

from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.schema.stored import Mark
from holdfast.sessions.storage_key import FOLDERS, Key, key_of, parse_key, parse_prefix
from holdfast.store.record import StoredRecord


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (["project", "p"], {"kind": "project", "session": "project_p", "id": "p"}),
        (["session", "p", "s"], {"kind": "session", "session": "s", "id": "s", "project": "p"}),
        (["message", "s", "m"], {"kind": "message", "session": "s", "id": "m"}),
        (["part", "m", "x"], {"kind": "part", "session": None, "id": "x", "parent": "m"}),
        (["todo", "s"], {"kind": "todo", "session": "s", "id": "s"}),
        (["session_diff", "s"], {"kind": "diff", "session": "s", "id": "s"}),
        (["share", "s"], {"kind": "share", "session": "s", "id": "s"}),
    ],
)
def test_a_key_names_a_record(names: list[str], key: dict[str, Any]) -> None:
    """And back."""
    parsed = parse_key(names)

    assert parsed == Key(names=tuple(names), **key)
    assert str(parsed) == "/".join(names)
    if parsed.kind != "session":
        record = StoredRecord(
            parsed.session or "s", parsed.kind, parsed.id, parsed.parent, 1, 1, 1, Mark.NONE, b""
        )
        assert key_of(record) == names


def test_every_kind_is_tried() -> None:
    """The table above has them all."""
    assert len(FOLDERS) == 7


@pytest.mark.parametrize(
    "names",
    [
        *([], ["prompt", "s", "m"], ["epoch", "s", "e"], ["migration"], ["nothing"], ["session", "s"]),
        *(["todo"], ["todo", "s", "x"], ["message", "s", ""], ["message", "s", "a/b"], "todo"),
        *(["message", "s", "\x00"], ["message", "s", 5], ["message", "s", "m" * 300]),
        *(["message", "s", "\ud800"], ["message", "s", "é"], [5]),
    ],
)
def test_what_is_no_key_is_refused(names: Any) -> None:
    """Records of the engine's own have none; a text is no list of names."""
    with pytest.raises(InvalidInput):
        parse_key(names)


@pytest.mark.parametrize("names", [["prompt"], ["nothing", "s"], "todo", ["message", ""], [None]])
def test_what_begins_no_key_is_refused(names: Any) -> None:
    """A prefix may be shorter than a key, and no other."""
    assert parse_prefix(["message"]) == ("message",)
    with pytest.raises(InvalidInput):
        parse_prefix(names)
