"""The snapshot as it is stored, and the keys that its entries have."""

from typing import Any

import pytest

from holdfast.context import keys
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.system_context import SystemContext
from holdfast.errors import InvalidInput
from holdfast.schema import wire
from tests.context.facts import Fact


def test_a_snapshot_survives_being_stored() -> None:
    """Values of every kind, null too, and the two kinds of no removal: without a word, and impossible."""
    snapshot = Snapshot(
        {
            "core/a": SnapshotEntry(None),
            "core/b": SnapshotEntry({"x": [1, 2.5, True, "é"]}, "b is gone"),
            "core/c": SnapshotEntry("", ""),
        }
    )

    stored = wire.encode(snapshot.to_json())

    assert stored.decode() == (
        '{"core/a":{"value":null},"core/b":{"value":{"x":[1,2.5,true,"é"]},"removal":"b is gone"},'
        '"core/c":{"value":"","removal":""}}'
    )
    assert Snapshot.readable(wire.decode(dict[str, Any], stored)) == snapshot


def test_one_state_has_one_text() -> None:
    """The entries are in the order of their keys, however they came."""
    one, two = SnapshotEntry(1), SnapshotEntry(2)
    forth, back = Snapshot({"core/a": one, "core/b": two}), Snapshot({"core/b": two, "core/a": one})

    assert wire.encode(forth.to_json()) == wire.encode(back.to_json())
    assert list(back) == ["core/a", "core/b"]


def test_a_snapshot_is_not_changed_through_what_it_was_made_of() -> None:
    """A change is a new snapshot."""
    entries = {"core/a": SnapshotEntry(1)}
    snapshot = Snapshot(entries)
    entries["core/b"] = SnapshotEntry(2)
    snapshot.to_json()["core/c"] = {}

    assert repr(snapshot) == "Snapshot({'core/a': SnapshotEntry(value=1, removal=None, text=None)})"


@pytest.mark.parametrize("harmed", [5, None, [], {}, {"removal": "gone"}, {"value": 1, "removal": 2}])
def test_one_harmed_entry_costs_no_other(harmed: Any) -> None:
    """What can be read is; that something is missing is told by the number."""
    data = {"core/a": {"value": 1, "text": "a is 1"}, "core/b": harmed}
    assert Snapshot.readable(data) == Snapshot({"core/a": SnapshotEntry(1, text="a is 1")})
    assert Snapshot.readable({}) == Snapshot()


@pytest.mark.parametrize(
    "key",
    [
        "",
        "core",
        "core/",
        "/core/x",
        "core//x",
        "core/x/",
        "Core/x",
        "co re/x",
        "-core/x",
        "core/a\nb",
        "core/a\x00",
        "core/\x1b[0m",
        "core/\u2028",
        "core/\udcff",
        "core/" + "x" * keys.KEY_CHARACTERS_MAX,
    ],
    ids=ascii,
)
def test_keys_are_namespaced(key: str) -> None:
    """A key without a namespace, or with what a line cannot hold, is refused, briefly, where it is given."""
    with pytest.raises(InvalidInput, match=r"^[^\n]* is no key of a context source: [ -~]+$") as caught:
        Fact(key, "a")
    assert len(str(caught.value)) < 300
    with pytest.raises(InvalidInput):
        SystemContext.unavailable(key, "why")


@pytest.mark.parametrize(
    "key",
    [
        "core/date",
        "a/b",
        "core/skill-guidance",
        "9_.-/x",
        "core/instructions/nested/My docs/Übung (1)/AGENTS.md",
        "core/instructions/nested/.hidden/[x]*?'\"\\~/日本語",
        "core/instructions/nested/" + "x" * 4096,
    ],
)
def test_the_path_of_a_file_may_be_part_of_a_key(key: str) -> None:
    """After the namespace every character of an ordinary path is allowed."""
    assert Fact(key, "a").context.keys == (key,)


@pytest.mark.parametrize(
    ("key", "within"), [("a/b", True), ("a/b/c", True), ("a/bc", False), ("a", False), ("x/a/b", False)]
)
def test_a_namespace_ends_at_a_slash(key: str, within: bool) -> None:
    """Letters in common are not enough to lie beneath."""
    assert keys.is_within(key, "a/b") is within
