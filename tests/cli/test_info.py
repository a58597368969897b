"""`holdfast info`: what a report of a fault needs, whatever is broken, and no secret."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.version import __version__
from tests.cli.conftest import Shell

SECTIONS = ["versions", "system", "paths", "store", "snapshots", "programs", "environment", "settings"]


def facts(shell: Shell) -> Any:
    """What a program reads."""
    done = shell("info", "--format", "json")
    assert (done.code, done.err) == (0, ""), done
    return done.json()


@pytest.mark.ci
def test_it_names_versions_paths_store_and_settings(shell: Shell) -> None:
    """For programs and for people; the text has no name of the user's home, and fits a report."""
    shell.conversation()
    shell.environment = {"HOLDFAST_LOG": "warn", "HOLDFAST_STORE": shell.store}
    config = shell.home / ".config/holdfast"
    config.mkdir(parents=True)
    (config / "holdfast.json").write_text(json.dumps({"logLevel": "INFO"}))

    found, text = facts(shell), shell("info").out

    assert list(found) == SECTIONS
    assert found["versions"]["holdfast"] == __version__
    assert found["versions"]["sqlite"].count(".") == 2
    assert found["paths"]["log"] == str(shell.home / ".local/state/holdfast/holdfast.log")
    assert found["system"]["box"].startswith(("full: ", "partial: ", "none: "))
    assert found["store"]["sessions"] == 1
    assert found["store"]["bytes"] > 10_000
    assert found["environment"]["HOLDFAST_LOG"] == "warn"
    assert found["settings"] == {"logLevel": "INFO"}
    assert "~/.local/state/holdfast/holdfast.log" in text
    assert f"{shell.home}/" not in text
    assert not (shell.home / ".local/state").exists()


@pytest.mark.ci
def test_no_secret_is_in_it(shell: Shell) -> None:
    """Not from settings, the environment, or the address of a store."""
    config = shell.home / ".config/holdfast"
    config.mkdir(parents=True)
    provider = {"options": {"apiKey": "hunter2", "headers": {"X-Mine": "hunter2"}}}
    (config / "holdfast.json").write_text(json.dumps({"provider": {"acme": provider}}))
    shell.environment = {
        "HOLDFAST_STORE": "postgresql://me:hunter2@127.0.0.1:9/db",
        "HOLDFAST_SERVER_PASSWORD": "hunter2",
        "HTTPS_PROXY": "http://me:hunter2@proxy.example",
    }

    found, text = facts(shell), shell("info").out

    assert "hunter2" not in json.dumps(found) + text
    assert found["store"]["url"] == "postgresql://me:***@127.0.0.1:9/db"
    assert "problem" in found["store"]
    assert found["environment"]["HTTPS_PROXY"] == "set"


@pytest.mark.ci
@pytest.mark.parametrize("broken", ["settings", "store", "url", "home", "directory"])
def test_what_is_broken_says_so_in_its_place(shell: Shell, tmp_path: Path, broken: str) -> None:
    """The exit code is 0: the answer is the answer. The other sections are whole."""
    script = "holdfast info --format json"
    shell.conversation()
    if broken == "settings":
        (shell.home / ".config/holdfast").mkdir(parents=True)
        (shell.home / ".config/holdfast/holdfast.json").write_text('{"model": ')
    elif broken == "store":
        store = Path(shell.store.partition("://")[2])
        file = store / "holdfast.json" if store.is_dir() else store
        file.write_bytes(b"SQLite format 3\0" + b"\xff" * 8_192)
    elif broken == "url":
        shell.environment["HOLDFAST_STORE"] = "nonsense://x"
    elif broken == "home":
        shell.environment["HOME"] = "relative"
    else:
        script = f"mkdir {tmp_path}/gone; cd {tmp_path}/gone; rmdir {tmp_path}/gone; {script}"

    done = shell.sh(script)
    found = json.loads(done.out)

    assert done.code == 0, done
    troubled = {name for name, section in found.items() if "problem" in section}
    assert (
        troubled
        == {
            "settings": {"settings"},
            "store": {"store"},
            "url": {"store"},
            "home": {"paths", "settings", "snapshots"},
            "directory": {"settings"},
        }[broken]
    )


def test_a_program_that_hangs_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `git` that does not answer delays the report by a bound."""
    from holdfast.cli.info import facts as gathered

    def hang(*_: object, timeout: float, **__: object) -> None:
        raise subprocess.TimeoutExpired("git", timeout)

    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr("subprocess.run", hang)

    assert gathered.programs() == {
        name: f"/bin/{name}: Command 'git' timed out after 5.0 seconds" for name in ("git", "rg")
    }
