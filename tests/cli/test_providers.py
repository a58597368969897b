"""`holdfast providers`: keeping, listing and forgetting keys. A key is never seen."""

import json
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Shell

KEY = "sk-very-secret"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """No store is touched, so one is enough."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    return Shell(tmp_path / "home", folder, f"sqlite://{tmp_path}/data/store")


def ours(shell: Shell) -> Path:
    return shell.home / ".local/share/holdfast/credentials.json"


@pytest.mark.ci
def test_mistakes_get_one_clear_line(shell: Shell) -> None:
    """An unknown provider, one that is not supported, a host, no key, nothing to forget."""
    assert "no provider is called 'opnai'; did you mean openai?" in shell.fails("providers", "login", "opnai")
    assert "amazon-bedrock is not supported" in shell.fails("providers", "login", "amazon-bedrock")
    assert "write it as https://HOST" in shell.fails("providers", "login", "http://host.example")
    assert "is not the name of a host" in shell.fails("providers", "login", "https://me@host.example/x")
    assert "standard input holds no key" in shell.fails("providers", "login", "openai")
    assert "holds no key of openai" in shell.fails("providers", "logout", "openai")
    assert "unexpected extra argument" in shell.fails("providers", "login", "openai", KEY, code=2)
    assert not ours(shell).exists()


def test_a_broken_file_is_named_and_not_shown(shell: Shell) -> None:
    """Whoever mends it must know which it is."""
    ours(shell).parent.mkdir(parents=True)
    ours(shell).write_text(f'{{"openai": "{KEY}"')
    told = shell.fails("providers", "list")
    assert told == f"{ours(shell)} is not a JSON object of credentials; mend it or move it away"


@pytest.mark.ci
def test_a_key_is_kept_listed_and_forgotten(shell: Shell) -> None:
    """In a file for the person alone; no command ever shows it."""
    login = shell("providers", "login", "openai", "--key-stdin", text=f"{KEY}\n")
    assert (login.code, login.out) == (0, "")
    assert stat.S_IMODE(ours(shell).stat().st_mode) == 0o600
    assert json.loads(ours(shell).read_text()) == {"openai": {"type": "api", "key": KEY}}
    listed = shell("providers", "list")
    assert listed.out.splitlines()[1].split() == ["openai", "OpenAI", "file", "can", "be", "used"]
    programs = shell("providers", "list", "--format", "json")
    expected = {"id": "openai", "name": "OpenAI", "origin": "file", "available": True, "problem": None}
    assert programs.json() == [expected]
    logout = shell("providers", "logout", "openai")
    assert logout.code == 0
    assert shell("providers", "list").err == (
        "No provider has a key yet; `holdfast providers login ID` keeps one.\n"
    )
    assert KEY not in f"{login} {listed} {programs} {logout}"


@pytest.mark.ci
def test_a_key_of_another_program_is_used_and_left_alone(shell: Shell) -> None:
    """OpenCode's file is read underneath ours; a sign-in of its own is not ours to use."""
    theirs = shell.home / ".local/share/opencode/auth.json"
    theirs.parent.mkdir(parents=True)
    oauth = {"type": "oauth", "refresh": "r", "access": "a", "expires": 1}
    wellknown = {"type": "wellknown", "key": "T", "token": "t"}
    entries = {"openai": {"type": "api", "key": KEY}, "anthropic": oauth, "https://h.example": wellknown}
    theirs.write_text(json.dumps(entries))
    rows = [line.split() for line in shell("providers", "list").out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [
        ["anthropic", "Anthropic", "opencode"],
        ["openai", "OpenAI", "opencode"],
        ["https://h.example", "opencode", "a"],
    ]
    told = shell.fails("providers", "logout", "openai")
    assert told == f"{ours(shell)} holds no key of openai; another one is in {theirs}"
    assert json.loads(theirs.read_text()) == entries


@pytest.mark.ci
def test_a_provider_that_nothing_knows_yet_can_be_forced(shell: Shell) -> None:
    """Its settings may come later."""
    assert shell("providers", "login", "mine", "--force", text=KEY).code == 0
    assert "is in no settings" in shell("providers", "list").out
