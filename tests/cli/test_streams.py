"""What a person's terminal, disk and directories may be like: still one clear line, still valid JSON."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.app import Holdfast
from tests.cli.conftest import Done, Shell

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
ODD = "naïve … 日本 \u202e \x1b[31m \U0001f600"


def sh(shell: Shell, script: str, folder: Path | None = None, **environment: str) -> Done:
    """Run a line of shell, where `holdfast` is ours."""
    ran = subprocess.run(
        ["/bin/sh", "-c", f'holdfast() {{ {HOLDFAST} "$@"; }}\n{script}'],
        cwd=folder or shell.folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(shell.home),
            "HOLDFAST_STORE": shell.store,
            "HOLDFAST_FAKE_VCS": "git",
            **environment,
        },
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Done(ran.returncode, ran.stdout.decode("latin-1"), ran.stderr.decode("latin-1"))


def odd_session(shell: Shell) -> str:
    """A session whose title and text have every kind of sign."""

    async def work(hf: Holdfast) -> str:
        from msgspec.structs import replace

        made = await hf.sessions.create(directory=shell.folder, title="plain")
        await hf.sessions.update(made.id, lambda old: replace(old, title=ODD))
        return made.id

    return str(shell.make(work))


@pytest.mark.ci
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_output_that_cannot_say_it_escapes_it(shell: Shell, encoding: str) -> None:
    """A terminal of a narrow encoding; JSON is UTF-8 always."""
    session = odd_session(shell)
    narrow: dict[str, Any] = {"PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    for command in ("list", f"show {session}", f"children {session}", "search plain", "show ñø…"):
        done = sh(shell, f"holdfast session {command}", **narrow)
        assert "internal error" not in done.err, done
        assert "Traceback" not in done.err, done
        assert "\x1b[31m" not in done.out + done.err
    told = json.loads(sh(shell, "holdfast session list --format json", **narrow).out.encode("latin-1"))
    assert [each["title"] for each in told] == [ODD]


@pytest.mark.ci
@pytest.mark.parametrize(
    "command",
    ["--version", "--help", "session list", "session list --format json", "doctor", "session export X"],
)
def test_a_full_disk_is_one_line(shell: Shell, command: str) -> None:
    """Whenever the text reaches it: at once, or when the process ends."""
    session = odd_session(shell)
    done = sh(shell, f"holdfast {command.replace('X', session)} >/dev/full")
    assert done.code == 1
    complaints = [line for line in done.err.splitlines() if not line.startswith("examining")]
    message = "standard output: No space left on device"
    as_json = json.dumps({"name": "SystemError", "data": {"message": message}})
    assert complaints == [as_json if "json" in command else f"holdfast: {message}"]


def test_a_full_disk_is_one_line_without_a_buffer_too(shell: Shell) -> None:
    """The one answer that is given before anything else is loaded."""
    done = sh(shell, "holdfast --version >/dev/full", PYTHONUNBUFFERED="1")

    assert done == Done(1, "", "holdfast: standard output: No space left on device\n")


@pytest.mark.ci
def test_streams_that_are_closed_or_full_are_no_reason_to_fail(shell: Shell) -> None:
    """Notes that nobody can hear are not missed; the exit code still tells."""
    odd_session(shell)
    for redirect in (">&-", "2>&-", ">&- 2>&-", "2>/dev/full", "<&-"):
        assert sh(shell, f"holdfast doctor {redirect}").code == 0, redirect
        done = sh(shell, f"holdfast session show nope {redirect}")
        assert (done.code, done.out) == (1, ""), redirect


@pytest.mark.ci
def test_an_error_cannot_command_the_terminal(shell: Shell) -> None:
    """What a person pasted comes back visible."""
    session = shell.conversation()
    file = shell.home / "\x1b]0;x\x07"
    file.touch()
    for arguments in (
        ["session", "export", session, "--output", str(file)],
        ["session", "import", str(file / "none")],
        ["session", "\x1b[31m"],
        ["--store", "\x1b]0;x\x07", "session", "list"],
    ):
        done = shell(*arguments)
        assert "\x1b" not in done.err
        assert "\x07" not in done.err
        assert "\\x1b" in done.err
        assert done.err.count("\n") == 1


@pytest.mark.ci
def test_a_directory_that_was_removed_is_named_as_such(shell: Shell, tmp_path: Path) -> None:
    """For whatever needs to know where it is; the rest works."""
    session = shell.conversation()
    export = tmp_path / "export.json"
    export.write_text(shell("session", "export", session).out)
    gone = f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone &&"
    for command in ("session list", "session search x", f"session import --here {export}"):
        done = sh(shell, f"{gone} holdfast {command}")
        assert (done.code, done.out) == (1, "")
        assert done.err == "holdfast: the current directory was removed; change to another\n"
    assert session in sh(shell, f"{gone} holdfast session list --all").out


@pytest.mark.ci
def test_a_directory_whose_name_is_no_text_is_named(shell: Shell) -> None:
    """No record can hold it, so nothing is filed there; what needs no directory works."""
    session = shell.conversation()
    odd = shell.folder / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    done = sh(shell, "holdfast session list", folder=odd)
    assert (done.code, done.out) == (1, "")
    assert "caf\\udce9' is not UTF-8" in done.err
    assert done.err.count("\n") == 1
    assert session in sh(shell, "holdfast session list --all", folder=odd).out


@pytest.mark.ci
def test_a_name_that_is_no_text_is_refused(shell: Shell) -> None:
    """As a session, a title or a word."""
    session = shell.conversation()
    bad = "\"$(printf 'x\\377')\""
    for command in (f"show {bad}", f"fork {bad}", f"list --title {bad}", f"fork {session} --message {bad}"):
        done = sh(shell, f"holdfast session {command}")
        assert done.err.count("\n") <= 1, (command, done)
        assert "internal error" not in done.err, (command, done)
        assert done.out == ""


@pytest.mark.ci
def test_json_about_files_whose_names_are_no_text(shell: Shell) -> None:
    """A backup under such a name is told in JSON that can be read; SQLite cannot make one, and says so."""
    shell.conversation()
    done = sh(shell, f"holdfast doctor --format json --backup {shell.home}/\"$(printf 'b\\377')\"")
    if shell.store.startswith("sqlite"):
        assert (done.code, done.out) == (1, "")
        assert "surrogate" in done.err.splitlines()[-1]
        assert "internal error" not in done.err
        return
    assert done.code == 0, done
    assert json.loads(done.out)["backup"].endswith("b\\udcff")


@pytest.mark.ci
def test_a_default_store_of_any_name_is_one_store(shell: Shell, tmp_path: Path) -> None:
    """What one command writes the other lists."""
    session = shell.conversation()
    export = tmp_path / "export.json"
    export.write_text(shell("session", "export", session).out)
    data = tmp_path / "a#b?c%20d e"
    home: dict[str, Any] = {"HOLDFAST_STORE": "", "XDG_DATA_HOME": str(data)}
    assert sh(shell, f"holdfast session import {export}", **home).code == 0
    assert [each["id"] for each in sh(shell, "holdfast session list --format json", **home).json()] == [
        session
    ]
    assert sh(shell, f"holdfast session archive {session}", **home).code == 0
    assert sorted(path.name for path in tmp_path.glob("a*")) == [data.name]
    assert "is not a URL" in shell.fails("--store", "sqlite://[", "session", "list")


def terminal(shell: Shell, typed: bytes, *arguments: str) -> str:
    """What stands in a terminal that does not know its own width, when something was typed into it."""
    mine, theirs = os.openpty()
    process = subprocess.Popen(
        [HOLDFAST, *arguments],
        cwd=shell.folder,
        env=shell.variables(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(mine, typed)
    seen = b""
    with contextlib.suppress(OSError):  # The last one has left the terminal.
        while piece := os.read(mine, 4096):
            seen += piece
    os.close(mine)
    process.wait(timeout=60)
    return seen.decode()


def test_a_terminal_of_no_width_cuts_nothing(shell: Shell) -> None:
    """As a new one is, before anybody has told it."""
    shell.conversation("A title that is rather long, but not too long for a line")

    assert "not too long for a line" in terminal(shell, b"", "session", "list")


@pytest.mark.ci
def test_a_question_without_an_answer_leaves_its_line(shell: Shell) -> None:
    """The complaint stands on a line of its own."""
    session = shell.conversation()
    lines = terminal(shell, b"\x04", "session", "delete", session).split("\r\n")

    assert lines[0].endswith("[y/N]: ")
    assert lines[-2:] == ["holdfast: interrupted", ""]
    assert shell("session", "show", session).code == 0


@pytest.mark.ci
def test_a_no_is_an_answer_and_no_interrupt(shell: Shell) -> None:
    """Nothing was erased, and that is said."""
    session = shell.conversation()
    lines = terminal(shell, b"n\n", "session", "delete", session).split("\r\n")

    assert lines[-2].endswith("Nothing was erased.")
    assert "interrupted" not in lines[-2]
    assert shell("session", "show", session).code == 0


def test_the_package_runs_as_a_module(shell: Shell) -> None:
    """`python -m holdfast` is the command, under its own name."""
    done = sh(shell, f"{sys.executable} -m holdfast session nonsense")

    assert (done.code, done.out) == (2, "")
    assert "(try 'holdfast session --help')" in done.err
