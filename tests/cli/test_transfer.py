"""`session export`, `session import` and `import opencode`, as a person runs them."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Shell


def other(shell: Shell, tmp_path: Path) -> Shell:
    """The same person with an empty store."""
    scheme = shell.store.partition(":")[0]
    return Shell(shell.home, shell.folder, f"{scheme}://{tmp_path}/elsewhere/store")


@pytest.mark.ci
def test_what_is_no_export_is_refused_and_nothing_is_written(shell: Shell, tmp_path: Path) -> None:
    """Not there, not JSON, another shape, hostile ids, deep nesting: one line, no session."""
    shell.conversation()
    before = shell("session", "list", "--all", "--format", "json").json()
    cases = {
        "text.json": "hello",
        "empty.json": "",
        "list.json": "[]",
        "shape.json": '{"info": 7, "messages": []}',
        "cut.json": '{"info": {"id": "ses_1"',
        "deep.json": "[" * 100_000,
        "path.json": json.dumps({"info": {"id": "ses_../../x"}, "messages": []}),
    }
    for name, text in cases.items():
        file = tmp_path / name
        file.write_text(text)
        shell.fails("session", "import", str(file))
    shell.fails("session", "import", str(tmp_path / "missing.json"))
    shell.fails("session", "import", str(tmp_path))
    assert shell("session", "list", "--all", "--format", "json").json() == before


@pytest.mark.ci
def test_export_and_import_give_equal_content(shell: Shell, tmp_path: Path) -> None:
    """Through a file and through a pipe; the second time nothing changes."""
    session = shell.conversation("A talk")
    file = tmp_path / "session.json"
    assert shell("session", "export", session, "--output", str(file)).code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert "exists already" in shell.fails("session", "export", session, "--output", str(file))
    there = other(shell, tmp_path)
    assert there("session", "import", str(file)).code == 0
    shown = shell("session", "show", session, "--format", "json").json()
    assert there("session", "show", session, "--format", "json").json() == shown
    again = there("session", "import", str(file), "--format", "json").json()
    assert again["counts"]["session"] == {
        "new": 0,
        "unchanged": 1,
        "different": 0,
        "updated": 0,
        "skipped": 0,
    }

    piped = shell("session", "export", session).out
    assert json.loads(piped) == json.loads(file.read_text())
    fresh = there("session", "import", "-", "--as-new", "--format", "json")
    assert fresh.code == 1
    fresh = Shell.__call__(there, "session", "import", "-", "--as-new", "--format", "json", text=piped)
    assert fresh.code == 0, fresh.err
    assert len(there("session", "list", "--all", "--format", "json").json()) == 2


@pytest.mark.ci
def test_opencodes_format_goes_both_ways(shell: Shell, tmp_path: Path) -> None:
    """A session comes to the current directory where its own is not here, or with --here; one that is here
    already moves with --here alone, and what differs is said.
    """
    session = shell.conversation("A talk")
    out = shell("session", "export", session, "--opencode").out
    told = json.loads(out)
    assert set(told) == {"info", "messages"}
    assert "placement" not in told["info"]
    file = tmp_path / "opencode.json"
    file.write_text(out)
    there = other(shell, tmp_path)
    there.folder = tmp_path / "another"
    there.folder.mkdir()

    def lives() -> list[tuple[str, str]]:
        listed = there("session", "list", "--all", "--format", "json").json()
        return [(each["id"], each["directory"]) for each in listed]

    assert there("session", "import", str(file)).code == 0
    assert lives() == [(session, str(shell.folder))]
    told["info"]["title"] = "Another title"
    file.write_text(json.dumps(told))
    assert there("session", "import", str(file)).out.splitlines() == [
        "message    2 unchanged",
        "part       3 unchanged",
        "session    1 different, left as they are here",
    ]
    assert there("session", "import", str(file), "--here").code == 0
    assert lives() == [(session, str(there.folder))]
    other_id = session[:-1] + ("y" if session.endswith("x") else "x")
    told["info"] |= {"id": other_id, "directory": "/nowhere/at/all"}
    for message in told["messages"]:
        message["info"]["sessionID"] = told["info"]["id"]
        for part in message["parts"]:
            part["sessionID"] = told["info"]["id"]
    file.write_text(json.dumps(told))
    assert there("session", "import", str(file)).code == 0
    assert sorted(lives()) == sorted((id, str(there.folder)) for id in (session, told["info"]["id"]))
    clean = json.loads(shell("session", "export", session, "--opencode", "--sanitize").out)
    assert "frobnicator" not in json.dumps(clean)
    assert "--sanitize goes with" in shell.fails("session", "export", session, "--sanitize", code=2)


@pytest.mark.ci
def test_a_tree_of_opencodes_is_imported_and_only_what_is_new_the_second_time(
    shell: Shell, tmp_path: Path
) -> None:
    """The source stays byte for byte; a place without data is named."""
    assert "does not exist" in shell.fails("import", "opencode", str(tmp_path / "nowhere"))
    storage = tmp_path / "opencode" / "storage"
    files = {
        "project/abc.json": {"id": "abc", "worktree": "/w", "time": {"created": 1}},
        "session/abc/ses_1.json": {
            "id": "ses_1",
            "projectID": "abc",
            "directory": "/w",
            "title": "From there",
            "version": "1",
            "time": {"created": 1, "updated": 2},
        },
        "message/ses_1/msg_1.json": {
            "id": "msg_1",
            "sessionID": "ses_1",
            "role": "user",
            "time": {"created": 1},
            "agent": "build",
            "model": {"providerID": "p", "modelID": "m"},
        },
        "part/msg_1/prt_1.json": {
            "id": "prt_1",
            "sessionID": "ses_1",
            "messageID": "msg_1",
            "type": "text",
            "text": "hello from there",
        },
    }
    for name, content in files.items():
        path = storage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2))
    before = {path: path.read_bytes() for path in storage.rglob("*.json")}

    first = shell("import", "opencode", str(storage.parent), "--format", "json").json()
    assert first["counts"]["session"]["new"] == 1
    assert "hello from there" in shell("session", "show", "ses_1").out
    second = shell("import", "opencode", str(storage.parent), "--format", "json").json()
    assert second["counts"]["session"] == {
        "new": 0,
        "unchanged": 1,
        "different": 0,
        "updated": 0,
        "skipped": 0,
    }
    assert {path: path.read_bytes() for path in storage.rglob("*") if path.is_file()} == before


@pytest.mark.ci
def test_a_tree_of_opencodes_is_taken_over_only_when_asked(tmp_path: Path) -> None:
    """Opened as a store it is refused by name; with --adopt it is ours, in place."""
    storage = tmp_path / "storage"
    info = {
        "id": "ses_1",
        "projectID": "abc",
        "directory": "/w",
        "title": "From there",
        "version": "1",
        "time": {"created": 1, "updated": 2},
        "somethingNew": {"kept": True},
    }
    (storage / "session" / "abc").mkdir(parents=True)
    (storage / "migration").write_text("2")
    file = storage / "session" / "abc" / "ses_1.json"
    file.write_text(json.dumps(info, indent=2))
    shell = Shell(tmp_path, tmp_path, f"file://{storage}")
    before = file.read_bytes()
    assert "--adopt" in shell.fails("session", "list", "--all")
    assert file.read_bytes() == before
    listed = shell("--adopt", "session", "list", "--all", "--format", "json").json()
    assert [(each["id"], each["somethingNew"]) for each in listed] == [("ses_1", {"kept": True})]
    assert len(shell("session", "list", "--all", "--format", "json").json()) == 1
    assert "only a files store" in shell.fails("--adopt", "--store", f"sqlite://{tmp_path}/x.db", "doctor")
