"""`holdfast config`, `holdfast agents` and `holdfast trust`: what a person types and what comes back."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.config.layers import editor_schema
from holdfast.secret_text import HIDDEN
from tests.cli.conftest import Shell


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.ci
def test_mistakes_get_one_clear_line(shell: Shell) -> None:
    """A broken file, a wrong agent, a folder that is none: never a traceback."""
    assert "no agent 'nobody'" in shell.fails("agents", "nobody")
    assert "is not a directory" in shell.fails("trust", "nowhere")
    assert "holds far more than one project" in shell.fails("trust", "/")
    assert "--list goes alone" in shell.fails("trust", "--list", "--revoke", code=2)
    path = write(shell.home / ".config/holdfast/holdfast.json", '{\n "model": 3}')
    assert shell.fails("config") == f"{path}:2:2: model: expected a text, got a whole number"
    assert str(path) in shell.fails("agents")


def test_nothing_set(shell: Shell) -> None:
    """An empty world is said to be empty, and reading makes no store."""
    ran = subprocess.run(
        [str(Path(sys.executable).with_name("holdfast")), "config"],
        env={"HOME": str(shell.home), "PATH": os.environ["PATH"]},
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert (ran.stdout, ran.stderr) == ("", "Nothing is set: everything is as it comes.\n")
    assert not (shell.home / ".local").exists()


@pytest.mark.ci
def test_settings_are_shown_with_their_origin_and_without_secrets(shell: Shell) -> None:
    """As a table, and as JSON."""
    ours = write(
        shell.home / ".config/holdfast/holdfast.json",
        '{\n "model": "a/b",\n "provider": {"p": {"options": {"apiKey": "hunter2"}}},\n "modle": 1}',
    )
    done = shell("config")

    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert ["model", "a/b", f"{ours}:2"] in lines
    assert ["provider.p.options.apiKey", HIDDEN, f"{ours}:3"] in lines
    assert ["HOLDFAST_FAKE_VCS", "git", "environment"] in lines
    assert f"{ours}:4:2: modle is no setting that Holdfast knows" in done.err
    body = shell("config", "--format", "json").json()
    assert body["config"] == {"model": "a/b", "provider": {"p": {"options": {"apiKey": HIDDEN}}}}
    assert body["origins"] == {"model": f"{ours}:2", "provider.p.options.apiKey": f"{ours}:3"}
    assert body["flags"] == {"HOLDFAST_FAKE_VCS": "git"}
    assert len(body["warnings"]) == 1


def test_the_schema_is_printed(shell: Shell) -> None:
    """Byte for byte the file for editors."""
    assert shell("config", "schema").out == editor_schema.FILE.read_text("utf-8")


@pytest.mark.ci
def test_trust_makes_a_folder_count(shell: Shell) -> None:
    """Left out with a notice, then in force, then left out again."""
    folder = shell.folder.resolve()
    write(folder / "opencode.json", '{"model": "a/b", "permission": {"bash": "deny"}}')
    before = shell("config", "--format", "json")
    assert before.json()["config"] == {}
    assert before.json()["restrictions"] == [[{"permission": "bash", "pattern": "*", "action": "deny"}]]
    assert f"`holdfast trust {folder}`" in before.json()["notices"][0]

    assert shell("trust").out == f"Trusted: {folder}\n"
    after = shell("config", "--format", "json").json()
    assert (after["config"]["model"], after["notices"]) == ("a/b", [])
    assert [
        (each["path"], each["granted"]) for each in shell("trust", "--list", "--format", "json").json()
    ] == [(str(folder), True)]
    assert shell("trust", str(folder), "--revoke").out == f"Not trusted: {folder}\n"
    assert shell("config", "--format", "json").json()["config"] == {}
    assert "not trusted" in shell("trust", "--list").out


@pytest.mark.ci
def test_agents_are_listed_and_shown(shell: Shell) -> None:
    """A table, one of them in full, and the protocol's JSON without keys."""
    write(
        shell.home / ".config/opencode/agent/mine.md",
        "---\ndescription: Does mine.\nmode: subagent\napiKey: hunter2\n---\nMy words.",
    )
    listed = shell("agents").out.splitlines()
    assert [line.split()[0] for line in listed] == ["AGENT", "build", "explore", "general", "mine", "plan"]
    one = shell("agents", "mine").out
    assert "My words." in one
    assert "hunter2" not in one
    body = shell("agents", "mine", "--format", "json").json()
    assert (body["name"], body["mode"], body["options"]) == ("mine", "subagent", {"apiKey": HIDDEN})
    assert len(shell("agents", "--all", "--format", "json").json()) == 8


@pytest.mark.ci
def test_agents_are_shown_without_what_came_from_elsewhere(shell: Shell) -> None:
    """Of a text with a variable in it only the words that ask for it, in every view."""
    agent = {
        "name": "shown",
        "description": "{env:MY_SECRET}",
        "prompt": "Say {env:MY_SECRET}.",
        "model": "p/{env:MY_SECRET}",
        "permission": [{"permission": "bash", "pattern": "{env:MY_SECRET}", "action": "allow"}],
        "options": {"user": "{env:MY_SECRET}"},
    }
    rules = [{"permission": "read", "pattern": "x{env:MY_SECRET}", "action": "deny"}]
    write(
        shell.home / ".config/holdfast/holdfast.json",
        json.dumps({"agent": {"key": agent}, "permission": rules}),
    )
    shell.environment = {"MY_SECRET": "hunter2"}
    views = [
        shell(*arguments)
        for arguments in (
            ("agents",),
            ("agents", "--all", "--format", "json"),
            ("agents", "shown"),
            ("agents", "build", "--format", "json"),
            ("config",),
        )
    ]
    body = shell("agents", "shown", "--format", "json").json()

    assert "hunter2" not in str(views) + str(body)
    assert body["description"] == "{env:MY_SECRET}"
    assert body["prompt"] == "Say {env:MY_SECRET}."
    assert body["model"] == {"providerID": "p", "modelID": "{env:MY_SECRET}"}
    assert body["options"] == {"user": "{env:MY_SECRET}"}
    patterns = [rule["pattern"] for rule in body["permission"]]
    assert {"{env:MY_SECRET}", "x{env:MY_SECRET}"} <= set(patterns)


ASK = """
import sys
from pathlib import Path
from holdfast.cli.trust import ask_trust
from holdfast.config import load
from holdfast.config.places import Places
here = Path(sys.argv[1])
none = here / "none"
places = Places(directory=here, worktree=here, home=here, opencode_config=none, holdfast_config=none)
known = {"none": None, "yes": True, "no": False}[sys.argv[2]]
print("answer", ask_trust(load.load(places, trusted=False), known), flush=True)
"""


def asked(folder: Path, known: str, typed: bytes | None) -> str:
    """What `ask_trust` answers, with or without a terminal."""
    command = [sys.executable, "-c", ASK, str(folder), known]
    if typed is None:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True
        ).stdout
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    ran = subprocess.run(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, timeout=60, check=True)
    os.close(theirs)
    os.close(ours)
    return ran.stdout.decode()


@pytest.mark.ci
def test_a_person_is_asked_once_and_only_in_a_terminal(tmp_path: Path) -> None:
    """Headless there is no question; who has answered is not asked again; nothing left out, no question."""
    (tmp_path / "opencode.json").write_text(json.dumps({"model": "a/b"}))
    assert asked(tmp_path, "none", None) == "answer None\n"
    assert asked(tmp_path, "none", b"y\n") == "answer True\n"
    assert asked(tmp_path, "none", b"\n") == "answer False\n"
    assert asked(tmp_path, "no", b"") == "answer None\n"
    (tmp_path / "opencode.json").write_text("{}")
    assert asked(tmp_path, "none", b"") == "answer None\n"


def test_plain_commands_load_no_parser(shell: Shell) -> None:
    """Listing sessions imports neither YAML nor JSON5, nor any of the settings."""
    code = (
        "import sys; from holdfast.cli.main import run; run(['session', 'list']); "
        "print([name for name in sys.modules if name in ('yaml', 'pyjson5', 'httpx2') "
        "or name.startswith('holdfast.config')])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"HOME": str(shell.home), "PATH": os.environ["PATH"]},
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout.strip() == "[]"
