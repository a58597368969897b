"""Refreshing the catalogue: from a server on this machine, and with every way it can go wrong."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from holdfast.errors import ContextError
from holdfast.provider.accounts.resolve import Providers
from holdfast.provider.catalog import refresh, snapshot
from holdfast.provider.catalog.snapshot import Source


class Site:
    """What the server answers next, and what it was asked."""

    def __init__(self) -> None:
        self.status, self.body, self.etag = 200, b"", '"one"'
        self.asked: list[tuple[str, str | None]] = []
        self.url = ""

    def publish(self, **models: dict[str, object]) -> None:
        provider = {
            "name": "P",
            "npm": "@ai-sdk/openai-compatible",
            "api": "https://p.example",
            "env": ["P_KEY"],
        }
        self.body = json.dumps({"p": provider | {"models": models}}).encode()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    """A server, and a cache directory of the test's own."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers.get("if-none-match")
            site.asked.append((self.path, known))
            fresh = known != site.etag
            self.send_response(site.status if fresh else 304)
            self.send_header("etag", site.etag)
            self.send_header("content-length", str(len(site.body) if fresh else 0))
            self.end_headers()
            if fresh:
                self.wfile.write(site.body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("HOLDFAST_MODELS_URL", site.url)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_refreshed_copy_wins_over_the_bundled(site: Site) -> None:
    """Its providers are known, the others stay, and models that it no longer has are gone from its own."""
    site.publish(m={"name": "M"})
    told = await refresh.refresh()
    assert told == f"1 models of 1 providers from {site.url}/api.json"
    bundled, copy = refresh.snapshots()
    assert copy.head.sources == (Source(name=f"{site.url}/api.json"),)
    providers = Providers([bundled, copy])
    assert list(providers.models("p")) == ["m"]
    assert "gpt-5" in providers.models("openai")


async def test_what_has_not_changed_is_not_sent_again(site: Site) -> None:
    """The tag of the last copy is shown to the same address only."""
    site.publish(m={})
    await refresh.refresh()
    assert await refresh.refresh() == f"{site.url}/api.json has nothing new"
    assert site.asked == [("/api.json", None), ("/api.json", '"one"')]
    refresh.copy_file().unlink()
    await refresh.refresh()
    assert site.asked[-1] == ("/api.json", None)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (500, b"", "answers 500; the old data stays"),
        (302, b"", "answers 302; the old data stays"),
        (200, b"<html>sign in</html>", "is not the JSON of models.dev"),
        (200, b"{}", "no provider in it has a model; the old data stays"),
    ],
)
async def test_a_bad_answer_leaves_the_old_copy(site: Site, status: int, body: bytes, told: str) -> None:
    """It is replaced only by one that was understood."""
    site.publish(m={})
    await refresh.refresh()
    before = refresh.copy_file().read_bytes()
    site.status, site.body, site.etag = status, body, '"two"'
    with pytest.raises(ContextError, match=told):
        await refresh.refresh()
    assert refresh.copy_file().read_bytes() == before


async def test_without_a_network_there_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And the bundled catalogue is there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("OPENCODE_MODELS_URL", "http://127.0.0.1:9")
    with pytest.raises(
        ContextError,
        match=r"the catalogue cannot be fetched: nothing listens at 127\.0\.0\.1:9; .*; the old data stays",
    ):
        await refresh.refresh()
    assert refresh.snapshots() == (snapshot.bundled(),)


@pytest.mark.parametrize("data", [b"", b"rubbish\n", b'{"format":9,"date":"","sources":[],"providers":{}}\n'])
def test_a_copy_that_cannot_be_read_is_as_good_as_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, data: bytes
) -> None:
    """A cache must not stop anybody."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    refresh.copy_file().parent.mkdir(parents=True)
    refresh.copy_file().write_bytes(data)
    assert refresh.snapshots() == (snapshot.bundled(),)


def test_an_old_copy_gives_way_to_a_newer_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After an upgrade the bundled catalogue may be the newer one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    refresh.copy_file().parent.mkdir(parents=True)
    refresh.copy_file().write_bytes(snapshot.encode("2020-01-01", (), {}))
    assert refresh.snapshots() == (snapshot.bundled(),)


def test_the_flag_names_a_host_or_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host gets the usual path."""
    assert refresh.address() == "https://models.dev/api.json"
    monkeypatch.setenv("OPENCODE_MODELS_URL", "https://host.example/")
    assert refresh.address() == "https://host.example/api.json"
    monkeypatch.setenv("HOLDFAST_MODELS_URL", "https://host.example/other.json")
    assert refresh.address() == "https://host.example/other.json"
