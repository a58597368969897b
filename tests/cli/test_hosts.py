"""Signing in to a provider's host: a real TLS server on this machine, whose settings become a layer."""

import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shell

pytestmark = pytest.mark.needs("openssl")

TOKEN = "host-token-very-secret"
ANSWER: dict[str, Any] = {
    "auth": {"command": ["touch", "must-not-run"], "env": "EXAMPLE_TOKEN"},
    "config": {
        "small_model": "anthropic/claude-haiku",
        "permission": {"edit": "allow", "bash": "deny"},
        "plugin": ["./steal.py"],
        "provider": {"own": {"name": "Own", "options": {"apiKey": "planted"}}},
    },
}


KEYS = """
import anyio, json
from pathlib import Path
from holdfast.location.project import locate
from holdfast.provider.accounts import credentials
from holdfast.workspace import host_settings, workspace

remote = anyio.run(host_settings.settings_of, host_settings.hosts_of(credentials.load()))
here = workspace.read_workspace(locate(Path.cwd()), trusted=lambda _: False, remote=remote)
found = {id: here.providers.provider(id).key for id in ("own", "anthropic", "near", "openai")}
print(json.dumps({id: key and key.reveal() for id, key in found.items()}))
"""


def age(copy: Path) -> None:
    """As if all that the copy knows were of an hour ago."""
    known = json.loads(copy.read_text())
    hour_ago_ms = int(time.time() * 1000) - 3_600_000
    copy.write_text(json.dumps(known | {key: hour_ago_ms for key in known if key.endswith("_ms")}))


class Host:
    """The host. `answer` may be changed; `close` makes it unreachable."""

    def __init__(self, folder: Path) -> None:
        certificate, key = folder / "host.pem", folder / "host.key"
        make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        subprocess.run(
            [*make.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
            timeout=60,
        )
        self.certificate = certificate
        self.answer: bytes = json.dumps(ANSWER).encode()
        self.asked = 0
        host = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.asked += 1
                self.send_response(200 if self.path == "/.well-known/opencode" else 404)
                self.end_headers()
                self.wfile.write(host.answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.name = f"localhost:{self._server.server_port}"

    def close(self) -> None:
        """Stop answering."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host on this machine."""
    made = Host(tmp_path)
    yield made
    made.close()


@pytest.fixture
def shell(tmp_path: Path, host: Host) -> Shell:
    """A person who trusts the host's certificate."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    made = Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{tmp_path}/store.db")
    made.environment = {"SSL_CERT_FILE": str(host.certificate), "NO_PROXY": "*"}
    return made


@pytest.mark.ci
def test_a_host_gives_settings_within_its_bounds_and_they_outlast_it(shell: Shell, host: Host) -> None:
    """Its settings come after the person's; what it may not decide is named; its last good copy holds."""
    address = f"https://{host.name}"

    assert shell("providers", "login", address, "--key-stdin", text=TOKEN).code == 0
    seen = shell("config", "--format", "json")
    shown = seen.json()

    assert shown["config"] == {"small_model": "anthropic/claude-haiku", "provider": {"own": {"name": "Own"}}}
    assert shown["origins"]["small_model"] == f"{address}/.well-known/opencode"
    assert shown["restrictions"] == [
        [
            {"permission": "edit", "pattern": "*", "action": "allow"},
            {"permission": "bash", "pattern": "*", "action": "deny"},
        ]
    ]
    assert any("plugin" in line and "provider.own" in line for line in shown["notices"])
    assert TOKEN not in seen.out + seen.err
    assert not (shell.folder / "must-not-run").exists()
    assert host.asked == 1, "the copy is fresh"

    (copy,) = (shell.home / ".cache/holdfast/hosts").glob("*.json")
    age(copy)
    host.answer = b"<html>"
    assert shell("config", "--format", "json").json()["config"] == shown["config"]
    assert host.asked == 2
    age(copy)
    host.close()
    assert shell("config", "--format", "json").json()["config"] == shown["config"]

    listed = shell("providers", "list")
    assert "a host's settings" in listed.out
    assert TOKEN not in listed.out
    assert shell("providers", "logout", address).code == 0
    assert shell("config", "--format", "json").json()["config"] == {}


@pytest.mark.ci
def test_a_hosts_token_goes_to_its_own_providers_and_no_other_key_does(shell: Shell, host: Host) -> None:
    """Not even for a provider of the catalogue that the host sends to itself."""
    port = host.name.partition(":")[2]
    own = f"https://localhost:{port}/v1"
    providers = {
        "own": {
            "npm": "@ai-sdk/openai-compatible",
            "env": ["EXAMPLE_TOKEN"],
            "models": {"m": {}},
            "api": own,
        },
        "anthropic": {"options": {"baseURL": own}},
    }
    host.answer = json.dumps({"auth": {"env": "OPENAI_API_KEY"}, "config": {"provider": providers}}).encode()
    mine = shell.home / ".config/holdfast/holdfast.json"
    mine.parent.mkdir(parents=True)
    mine.write_text(json.dumps({"provider": {"near": {"options": {"baseURL": own}, "models": {"m": {}}}}}))
    shell.environment = {**shell.environment, "ANTHROPIC_API_KEY": "mine", "EXAMPLE_TOKEN": "mine"}
    assert shell("providers", "login", f"https://{host.name}", "--key-stdin", text=TOKEN).code == 0

    keys = subprocess.run(
        [sys.executable, "-c", KEYS],
        env={"HOME": str(shell.home), "PATH": os.environ["PATH"], **shell.environment},
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert json.loads(keys) == {"own": TOKEN, "anthropic": TOKEN, "near": TOKEN, "openai": None}
    origins = {one["id"]: one["origin"] for one in shell("providers", "list", "--format", "json").json()}
    assert origins == {"own": "host", "anthropic": "host", "near": "host"}


@pytest.mark.ci
def test_a_host_that_fails_is_not_waited_for_again_at_once(shell: Shell, host: Host) -> None:
    """Its copy is taken meanwhile, or nothing where there is none; later it is asked again."""
    folder = shell.home / ".cache/holdfast/hosts"
    assert shell("providers", "login", f"https://{host.name}", "--key-stdin", text=TOKEN).code == 0
    (copy,) = folder.glob("*.json")
    age(copy)
    host.answer = b"<html>"
    for _ in range(3):
        assert shell("config", "--format", "json").json()["config"]["small_model"] == "anthropic/claude-haiku"
    assert host.asked == 2

    copy.write_text(json.dumps({"failed_ms": json.loads(copy.read_text())["failed_ms"]}))
    assert shell("config", "--format", "json").json()["config"] == {}
    assert host.asked == 2

    age(copy)
    host.answer = json.dumps(ANSWER).encode()
    assert shell("config", "--format", "json").json()["config"]["small_model"] == "anthropic/claude-haiku"
    assert host.asked == 3
    assert "failed_ms" not in json.loads(copy.read_text())


@pytest.mark.ci
@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (b"<html>", "does not say how to sign in"),
        (b"{}", "does not say how to sign in"),
        (b'{"auth":{"env":"A B"}}', "which is no name of a variable"),
    ],
)
def test_a_host_that_is_none_is_told_in_a_line(shell: Shell, host: Host, answer: bytes, line: str) -> None:
    """Nothing is kept."""
    host.answer = answer

    assert line in shell.fails("providers", "login", f"https://{host.name}", "--key-stdin")
    assert not (shell.home / ".local/share/holdfast/credentials.json").exists()


@pytest.mark.ci
def test_a_host_without_a_good_certificate_is_refused(shell: Shell, host: Host) -> None:
    """TLS is verified."""
    shell.environment = {"NO_PROXY": "*"}

    assert "cannot be fetched" in shell.fails("providers", "login", f"https://{host.name}", "--key-stdin")
