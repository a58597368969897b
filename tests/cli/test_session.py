"""`holdfast session …`: what a person types and what comes back."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

import holdfast
from holdfast.app import Holdfast
from holdfast.schema.session import AgentRun
from holdfast.sessions import create
from holdfast.version import __version__
from tests.cli.conftest import Shell

SETTINGS = {
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "http://127.0.0.1:9/v1"},
            "models": {"m": {"name": "M", "limit": {"context": 100_000, "output": 8_000}}},
        }
    }
}


@pytest.mark.ci
def test_mistakes_get_one_clear_line(shell: Shell) -> None:
    """Never a traceback: an unknown command, session, option, value or store."""
    shell.conversation()
    assert "No such command 'lst'" in shell.fails("session", "lst", code=2)
    assert "No such option" in shell.fails("session", "list", "--nope", code=2)
    assert "no session is called 'nope'" in shell.fails("session", "show", "nope")
    assert "no session is called" in shell.fails("session", "fork", "../../etc/passwd")
    assert "Invalid value" in shell.fails("session", "list", "--limit", "0", code=2)
    assert "is not one of" in shell.fails("--store", "mysql://x", "session", "list")
    assert "must name an absolute path" in shell.fails("--store", "sqlite://x/y", "session", "list")
    assert "there is no store at" in shell.fails(
        "--store", f"sqlite://{shell.home}/none.db", "session", "list"
    )


@pytest.mark.ci
def test_a_store_that_is_something_else_is_named(shell: Shell, tmp_path: Path) -> None:
    """A text file, and a database of another program, are refused and left alone."""
    text = tmp_path / "notes.txt"
    text.write_text("this is not a database, it is a longer piece of text")
    line = shell.fails("--store", f"sqlite://{text}", "session", "list")
    assert "is not a SQLite database" in line
    assert "`holdfast doctor --salvage NEW`" in line
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine(x)")
    before = other.read_bytes()
    assert "not a Holdfast store" in shell.fails("--store", f"sqlite://{other}", "session", "list")
    assert other.read_bytes() == before
    assert text.read_text().startswith("this is not")


def test_reading_makes_no_store(tmp_path: Path) -> None:
    """With nothing there, the default list is empty, and nothing is created."""
    home = tmp_path / "home"
    home.mkdir()
    holdfast = str(Path(sys.executable).with_name("holdfast"))
    ran = subprocess.run(
        [holdfast, "session", "list"],
        env={"HOME": str(home), "PATH": ""},
        capture_output=True,
        check=True,
        cwd=home,
    )
    assert ran.stdout == b""
    assert b"No sessions" in ran.stderr
    assert list(home.iterdir()) == []


def test_version(shell: Shell) -> None:
    """The literal, by itself or after other options."""
    assert shell("--version").out == f"holdfast {__version__}\n"
    assert shell("--store", shell.store, "--version").out == f"holdfast {__version__}\n"


@pytest.mark.ci
def test_a_list_that_ends_early_says_how_to_go_on(shell: Shell) -> None:
    """With a cursor, in either form; each session is shown once. `--since` takes what is newer."""
    ids = [shell.conversation(title) for title in ("One", "Two", "Three")]
    cursor: list[str] = []
    seen: list[str] = []
    for _ in range(3):
        page = shell("session", "list", "--limit", "1", "--format", "json", *cursor)
        seen += [each["id"] for each in page.json()]
        words = page.err.split()
        cursor = ["--cursor", words[words.index("--cursor") + 1]] if page.err else []
    assert (sorted(seen), cursor) == (sorted(ids), [])
    assert "There are more: --cursor " in shell("session", "list", "-n", "2").err

    for since, count in (("1h", 3), ("3d", 3), ("2026-01-01", 3), ("2200-01-01", 0)):
        assert len(shell("session", "list", "--since", since, "--format", "json").json()) == count, since
    assert "'soon' is no moment" in shell.fails("session", "list", "--since", "soon", code=2)
    assert "cursor" in shell.fails("session", "list", "--cursor", "nonsense")


@pytest.mark.ci
def test_a_session_whose_directory_is_gone_is_read_and_moved(shell: Shell, tmp_path: Path) -> None:
    """Everything that only reads works; a prompt says how to go on; once moved, it is this project's."""
    gone = tmp_path / "gone"
    gone.mkdir()
    session = Shell(shell.home, gone, shell.store).conversation("From elsewhere")
    gone.rmdir()
    (shell.home / ".config/holdfast").mkdir(parents=True)
    (shell.home / ".config/holdfast/holdfast.json").write_text(json.dumps(SETTINGS))

    assert "it is fixed" in shell("session", "show", session).out
    assert "please fix the frobnicator" in shell("session", "context", session, "--format", "text").out
    assert shell("session", "export", session, "--output", str(tmp_path / "x.json")).code == 0
    assert shell.fails("run", "-s", session, "hello") == (
        f"{gone} is not here, so session {session} can only be read; "
        f"`holdfast session move {session} [DIR]` lets it work elsewhere"
    )
    assert "hello" not in shell("session", "show", session).out
    assert shell.fails("session", "move", session, str(tmp_path / "missing")).endswith(
        "missing is not a directory; create it or name another"
    )
    assert shell("session", "move", session).out == f"{session} works in {shell.folder} now.\n"
    assert [each["directory"] for each in shell("session", "list", "--format", "json").json()] == [
        str(shell.folder)
    ]


@pytest.mark.ci
def test_outside_of_a_checkout_the_directory_is_the_project(shell: Shell, tmp_path: Path) -> None:
    """A list shows this directory's sessions, as `run --continue` takes them, and `--all` the others."""

    async def main() -> list[str]:
        async with holdfast.open(shell.store) as hf:
            return [(await hf.sessions.create(directory=each)).id for each in (shell.folder, tmp_path)]

    here, elsewhere = anyio.run(main)
    shell.environment = {"HOLDFAST_FAKE_VCS": ""}

    assert [each["id"] for each in shell("session", "list", "--format", "json").json()] == [here]
    everything = shell("session", "list", "--all", "--format", "json").json()
    assert {each["id"] for each in everything} == {here, elsewhere}
    shell("session", "delete", here, "--yes")
    assert shell("session", "list").err == "No sessions in this directory. --all shows every project.\n"


@pytest.mark.ci
def test_the_session_of_an_agent_run_is_listed_with_all_alone(shell: Shell) -> None:
    """Neither by default nor among the archived; `restore` makes an ordinary session of it."""

    async def work(hf: Holdfast) -> str:
        run = AgentRun(agent="explore")
        return (await create.create(hf.sessions.access, directory=shell.folder, agent_run=run)).id

    run, own = shell.make(work), shell.conversation("First")

    assert [each["id"] for each in shell("session", "list", "--archived", "--format", "json").json()] == [own]
    table = shell("session", "list", "--all").out.splitlines()
    assert {line.split()[0]: "agent run" in line for line in table[1:]} == {own: False, run: True}
    assert shell("session", "restore", run).code == 0
    assert {each["id"] for each in shell("session", "list", "--format", "json").json()} == {run, own}


@pytest.mark.ci
def test_list_shows_this_project_unless_asked_for_all(shell: Shell, tmp_path: Path) -> None:
    """The last updated first; archived ones hidden; JSON is an array."""
    first = shell.conversation("First")
    second = shell.conversation("Second")
    elsewhere = Shell(shell.home, tmp_path / "other", shell.store)
    elsewhere.folder.mkdir()
    third = elsewhere.conversation("Third")

    assert {each["id"] for each in shell("session", "list", "--format", "json").json()} == {first, second}
    everything = shell("session", "list", "--all", "--format", "json").json()
    assert {each["id"] for each in everything} == {first, second, third}
    assert [each["title"] for each in elsewhere("session", "list", "--format", "json").json()] == ["Third"]
    table = shell("session", "list").out.splitlines()
    assert table[0].split() == ["SESSION", "UPDATED", "STATE", "TITLE"]
    assert {line.split()[0] for line in table[1:]} == {first, second}

    assert shell("session", "archive", first).code == 0
    assert [each["id"] for each in shell("session", "list", "--format", "json").json()] == [second]
    archived = shell("session", "list", "--archived", "--format", "json").json()
    assert {each["id"] for each in archived} == {first, second}
    assert shell("session", "restore", first).code == 0
    assert len(shell("session", "list", "--format", "json").json()) == 2
    assert [each["id"] for each in shell("session", "list", "--title", "FIR", "--format", "json").json()] == [
        first
    ]


@pytest.mark.ci
def test_show_prints_the_conversation(shell: Shell) -> None:
    """By id, by its beginning, by slug; for programs as info and messages."""
    session = shell.conversation("A talk")
    told = shell("session", "show", session, "--format", "json").json()
    assert told["info"]["id"] == session
    assert [message["parts"][0]["text"] for message in told["messages"]] == [
        "please fix the frobnicator",
        "it is fixed",
    ]
    for name in (session[:-3], told["info"]["slug"]):
        out = shell("session", "show", name).out
        assert "A talk" in out
        assert "please fix the frobnicator\n" in out


@pytest.mark.ci
def test_a_title_cannot_command_the_terminal(shell: Shell) -> None:
    """Control characters are shown as blanks."""

    async def work(hf: Holdfast) -> str:
        from msgspec.structs import replace

        made = await hf.sessions.create(directory=shell.folder, title="evil")
        await hf.sessions.update(made.id, lambda old: replace(old, title="\x1b[31mred\x07"))
        return made.id

    shell.make(work)
    assert "\x1b[31m" not in shell("session", "list").out
    assert "\x07" not in shell("session", "list").out


@pytest.mark.ci
def test_search_finds_words(shell: Shell) -> None:
    """With the message and a snippet; nothing found is no error."""
    session = shell.conversation("One", "the quick frobnicator jumps")
    shell.conversation("Two", "something else")
    found = shell("session", "search", "QUICK", "frobnicator", "--wait", "--format", "json").json()
    hits = found["hits"]
    assert found["indexed"] == 1
    assert [(hit["session"], hit["title"]) for hit in hits] == [(session, "One")]
    assert "quick frobnicator" in hits[0]["snippet"]
    assert hits[0]["message"].startswith("msg_")
    assert shell("session", "search", '"AND(*', "--format", "json").json() == {"hits": [], "indexed": 1.0}
    assert shell("session", "search", "nothinglikethis").code == 0


@pytest.mark.ci
def test_fork_and_children(shell: Shell) -> None:
    """A fork is no child; a child is."""
    session = shell.conversation("Base")
    told = shell("session", "show", session, "--format", "json").json()
    cut = told["messages"][1]["info"]["id"]
    forked = shell("session", "fork", session, "--message", cut, "--format", "json").json()
    assert forked["title"] == "Base (fork #1)"
    assert len(shell("session", "show", forked["id"], "--format", "json").json()["messages"]) == 1
    assert shell("session", "children", session, "--format", "json").json() == []
    assert "does not exist" in shell.fails("session", "fork", session, "--message", "msg_none")

    async def work(hf: Holdfast) -> tuple[str, str]:
        child = await hf.sessions.create(parent=session)
        return child.id, (await hf.sessions.create(parent=child.id)).id

    child, grandchild = shell.make(work)
    below = shell("session", "children", session, "--format", "json").json()
    assert [each["id"] for each in below] == [child]
    below = shell("session", "children", session, "--deep", "--format", "json").json()
    assert [each["id"] for each in below] == [child, grandchild]


@pytest.mark.ci
def test_delete_asks_first(shell: Shell) -> None:
    """Without an answer nothing is erased; --yes erases."""
    session = shell.conversation()
    assert "give --yes" in shell.fails("session", "delete", session, code=2)
    assert len(shell("session", "list", "--format", "json").json()) == 1
    assert shell("session", "delete", session, "--yes", "--format", "json").json() == [session]
    assert shell("session", "list", "--format", "json").json() == []
    assert "no session is called" in shell.fails("session", "delete", session, "--yes")


@pytest.mark.parametrize("command", [[], ["session"], ["session", "list"], ["session", "export"], ["doctor"]])
def test_help_fits_a_terminal(shell: Shell, command: list[str]) -> None:
    """80 columns, and every command says what it does."""
    done = shell(*command, "--help")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert "Usage: holdfast" in done.out


def test_closed_output_is_no_error(shell: Shell) -> None:
    """`holdfast … | head -0` ends quietly."""
    shell.conversation()
    holdfast = str(Path(sys.executable).with_name("holdfast"))
    ran = subprocess.run(
        ["/bin/sh", "-c", f"{holdfast} session list --format json | true; echo done"],
        cwd=shell.folder,
        env={"HOLDFAST_STORE": shell.store, "HOME": str(shell.home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    assert ran.stdout == b"done\n"
    assert ran.stderr == b""


@pytest.mark.ci
def test_doctor_finds_a_sound_store_sound(shell: Shell) -> None:
    """Counts and a verdict; with --backup also a copy that opens by itself."""
    shell.conversation()
    told = shell("doctor", "--format", "json").json()
    assert (told["clean"], told["sessions"], told["findings"]) == (True, 1, [])
    assert told["records"] >= 5
    assert told["box"]["level"] in ("full", "partial", "none")
    assert "\nbox: " in shell("doctor").out
    copy = shell.home / "copy"
    assert shell("doctor", "--backup", str(copy)).code == 0
    scheme = shell.store.partition(":")[0]
    listed = json.loads(
        shell("--store", f"{scheme}://{copy}", "session", "list", "--all", "--format", "json").out
    )
    assert len(listed) == 1
    assert "exists already" in shell.fails("doctor", "--backup", str(copy))


@pytest.mark.ci
def test_doctor_tries_the_box_without_a_store_too(shell: Shell) -> None:
    """A new user has none yet."""
    done = shell("doctor")

    assert done.code != 0
    assert done.err.startswith(("box: full", "box: partial", "box: none"))
    assert "there is no store" in done.err


@pytest.mark.ci
def test_a_session_is_renamed(shell: Shell) -> None:
    """Its id and slug stay; a title that cannot be seen is refused."""
    session = shell.conversation("Old")

    done = shell("session", "rename", session, "  A new title  ")

    assert (done.code, done.out) == (0, f"Renamed {session}  A new title\n")
    assert shell("session", "rename", session, "Newer", "--format", "json").json()["title"] == "Newer"
    assert shell.fails("session", "rename", session, " \t", code=2).startswith(
        "a title has at least one sign"
    )
