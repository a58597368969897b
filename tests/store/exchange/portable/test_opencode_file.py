"""OpenCode's own export format, held against files that OpenCode 1.18.33 wrote."""

from typing import Any

import msgspec
import pytest

from holdfast.errors import Conflict, NotFound
from holdfast.store.base import Store
from holdfast.store.exchange.portable.import_file import Into
from holdfast.store.exchange.portable.report import Counts
from tests.store.exchange.portable.opencode_file import REAL, real
from tests.store.exchange.portable.world import (
    CHILD,
    PARENT,
    assistant,
    commit,
    entry,
    exported,
    for_opencode,
    msg,
    put,
    session,
    taken,
    text,
    user,
)

ID = "ses_e220ef30affejZ4kkNbvVuwkR6"


def theirs(*messages: Any, **info: Any) -> bytes:
    return msgspec.json.encode({"info": {**session(), **info}, "messages": messages})


async def test_an_unknown_session_cannot_be_exported(store: Store) -> None:
    """`NotFound`, before the first byte."""
    with pytest.raises(NotFound, match="does not exist"):
        await for_opencode(store, CHILD)


async def test_a_part_that_moved_to_another_message_is_a_conflict(store: Store) -> None:
    """Insert or ignore cannot say what a part with two messages means."""
    await taken(store, theirs({"info": user(1), "parts": [text(2, 1)]}))

    with pytest.raises(Conflict, match="belongs to another message here"):
        await taken(store, theirs({"info": user(3), "parts": [text(2, 3)]}))


async def test_what_opencode_wrote_comes_back_as_it_was(store: Store) -> None:
    """Every message and all twelve kinds of part of a real export survive import and export."""
    report = await taken(store, REAL / "export.json")

    data = await for_opencode(store, ID)

    assert msgspec.json.decode(data) == real("export.json")
    assert report.counts == {
        "session": Counts(new=1),
        "message": Counts(new=2),
        "part": Counts(new=18),
    }


async def test_the_layout_is_opencodes(store: Store) -> None:
    """Two blanks of indent and a line break at the end: the same text that OpenCode would print."""
    await taken(store, REAL / "export.json")

    data = await for_opencode(store, ID)

    assert data == msgspec.json.format(data, indent=2) + b"\n"
    assert data.startswith(b'{\n  "info": {\n    "id": "ses_')
    await commit(store, put("session", session()))
    assert (await for_opencode(store)).endswith(b'\n  },\n  "messages": []\n}\n')


async def test_sanitizing_takes_out_exactly_what_opencode_takes_out(store: Store) -> None:
    """Word for word the markers of OpenCode, in the same places, and nothing else changed."""
    await taken(store, REAL / "export.json")

    data = await for_opencode(store, ID, sanitize=True)

    assert msgspec.json.decode(data) == real("sanitized.json")


async def test_sanitizing_drops_what_nobody_can_judge(store: Store) -> None:
    """Fields that we do not know may say anything, so a sanitized export has none."""
    await taken(
        store,
        theirs(
            {"info": {**user(1), "future": "secret"}, "parts": [{**text(2, 1), "new": "secret"}]}, x="secret"
        ),
    )

    assert b"secret" in await for_opencode(store)
    assert b"secret" not in await for_opencode(store, sanitize=True)


async def test_sanitizing_drops_what_undo_goes_by(store: Store) -> None:
    """Paths of changed files, and digests by which a guess at their content could be confirmed."""
    patch = {**text(3, 1), "type": "patch", "hash": "5ec2e7", "files": ["/home/alice/secret.txt"]}
    del patch["text"]
    change = {"path": "/home/alice/secret.txt", "before": "5ec2e7", "after": "5ec2e7", "observed": True}
    step = {**text(2, 1), "type": "step-start", "snapshot": "5ec2e7", "left": "5ec2e7"}
    del step["text"]
    revert = {"messageID": user(1)["id"], "kept": "5ec2e7", "writes": "5ec2e7"}
    reverted = [{"messageID": user(1)["id"], "kept": "5ec2e7", "time": {"created": 1}}]
    parts = [step, {**patch, "changes": [change]}]
    await taken(store, theirs({"info": user(1), "parts": parts}, revert=revert, reverted=reverted))

    whole, sanitized = await for_opencode(store), await for_opencode(store, sanitize=True)
    assert (whole.count(b"5ec2e7"), whole.count(b"secret.txt")) == (8, 2)
    assert (sanitized.count(b"5ec2e7"), sanitized.count(b"secret.txt")) == (0, 0)


async def test_sanitizing_drops_which_file_was_attached(store: Store) -> None:
    """Neither where it lies nor a digest by which a guess at its content could be confirmed."""
    read = {"filepath": "/home/alice/secret.txt", "sha256": "5ec2e7"}
    file = {**text(2, 1), "type": "file", "mime": "text/plain", "url": "file:///home/alice/secret.txt"}
    del file["text"]
    await taken(store, theirs({"info": user(1), "parts": [{**file, "read": read}]}))

    assert b"5ec2e7" in await for_opencode(store)
    sanitized = await for_opencode(store, sanitize=True)
    assert b"5ec2e7" not in sanitized
    assert b"secret.txt" not in sanitized


async def test_only_what_opencode_knows_is_written(store: Store) -> None:
    """No system message (OpenCode refuses the file for one), no placement, no share, no other record."""
    told = {"id": msg(9), "sessionID": PARENT, "role": "system", "time": {"created": 1}, "text": "Monday"}
    shared = session(share={"url": "https://example.invalid/s"})
    await commit(store, put("session", shared), put("message", user(1)), put("message", told))

    made = msgspec.json.decode(await for_opencode(store))

    assert [each["info"]["id"] for each in made["messages"]] == [msg(1)]
    assert set(made) == {"info", "messages"}
    assert not {"placement", "share"} & set(made["info"])


async def test_ids_stay_and_records_are_forced_into_their_session(store: Store) -> None:
    """Whatever session a message names, it belongs to the one that is imported."""
    astray = {"info": user(1, CHILD), "parts": [text(2, 7, id=CHILD)]}

    await taken(store, theirs(astray), into=Into(project="p2", directory="/home/alice/x", path=""))

    made = msgspec.json.decode(await for_opencode(store))
    assert made["messages"] == [{"info": user(1), "parts": [text(2, 1)]}]
    assert (made["info"]["projectID"], made["info"]["directory"]) == ("p2", "/home/alice/x")


async def test_importing_again_adds_only_what_is_new(store: Store) -> None:
    """What is there stays, and where the file says otherwise that is counted; where the session lives follows
    on request alone.
    """
    first = {"info": user(1), "parts": [text(2, 1)]}
    await taken(store, theirs(first))

    again = await taken(store, theirs(first, title="Changed", directory="/other"))
    same = await taken(store, theirs(first, directory="/other"))
    more = await taken(
        store,
        theirs(
            {"info": user(1), "parts": [text(2, 1, "edited")]},
            {"info": assistant(3, 1), "parts": [text(4, 3)]},
        ),
        into=Into(directory="/elsewhere"),
    )

    made = msgspec.json.decode(await for_opencode(store))
    assert not again.changed
    assert again.counts["session"] == Counts(different=1)
    assert same.counts["session"] == Counts(unchanged=1)
    assert more.counts["session"] == Counts(updated=1)
    assert more.counts["message"] == Counts(new=1, unchanged=1)
    assert more.counts["part"] == Counts(new=1, different=1)
    assert [part["text"] for each in made["messages"] for part in each["parts"]] == ["hello", "hello"]
    assert (made["info"]["title"], made["info"]["directory"]) == ("A session", "/elsewhere")
    assert more.notes == ()


async def test_a_gap_that_is_filled_late_is_told(store: Store) -> None:
    """Order is the order of commits: a message from before the end can only be added at the end."""
    await taken(store, theirs({"info": user(3), "parts": []}))

    report = await taken(store, theirs({"info": user(1), "parts": []}, {"info": user(3), "parts": []}))

    assert len(report.notes) == 1
    assert "added at the end" in report.notes[0]


async def test_the_share_of_a_foreign_session_is_not_ours(store: Store) -> None:
    """We do not have its secret, so the session is not shown as shared."""
    await taken(store, theirs(share={"url": "https://example.invalid/s"}))

    assert b"example.invalid" not in await exported(store)


async def test_a_child_in_opencodes_format_may_lack_its_parent(store: Store) -> None:
    """Its parent moves to the metadata, as in our own format."""
    report = await taken(store, theirs(id=CHILD, parentID=PARENT))

    record = await store.session(CHILD)
    assert record is not None
    assert msgspec.json.decode(record.data)["metadata"] == {"parent": {"sessionID": PARENT}}
    assert len(report.notes) == 1


async def test_the_format_is_known_by_its_shape(store: Store, other: Store) -> None:
    """One verb reads both: what was exported for OpenCode is imported as it is."""
    ours = entry()
    await taken(store, msgspec.json.encode({"info": ours["session"], "messages": ours["messages"]}))

    await taken(other, await for_opencode(store))

    assert await for_opencode(other) == await for_opencode(store)
