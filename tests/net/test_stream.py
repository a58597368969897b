"""The HTTP client: the small GET and its bounds. The stream: tests/provider/wire/test_stream.py."""

import socket
import subprocess
import sys

import pytest

from holdfast.errors import ProviderError
from holdfast.net.stream import Http, SmallAnswer
from holdfast.testing.mock_provider import MockProvider, Raw, Trouble

JSON = {"content-type": "application/json", "etag": '"1"'}


async def test_get_answers_whole_and_remembers_by_etag() -> None:
    """A small answer comes whole; asked again with its tag, an unchanged one is 304 without a body."""
    async with MockProvider() as mock:
        http = Http()
        mock.play(Raw((b'{"a":', b"1}"), 200, JSON), Raw((), 304, {}))
        first = await http.get(f"{mock.url}/x", bytes_max=100, timeout_ms=60_000)
        second = await http.get(f"{mock.url}/x", bytes_max=100, timeout_ms=60_000, etag=first.etag)
        await http.aclose()

    assert (first.status, first.body, first.etag) == (200, b'{"a":1}', '"1"')
    assert second == SmallAnswer(status=304, headers={}, body=b"")
    assert mock.requests[1].headers["if-none-match"] == '"1"'


async def test_get_refuses_what_is_too_large() -> None:
    """A body beyond its bound is an error, never half a body."""
    async with MockProvider() as mock:
        http = Http()
        mock.play(Raw((b"x" * 60, b"x" * 60), 200, {}))
        with pytest.raises(ProviderError, match="more than 100 bytes"):
            await http.get(f"{mock.url}/x", bytes_max=100, timeout_ms=60_000)
        await http.aclose()


async def test_get_is_bounded_in_time() -> None:
    """A server that does not answer is left."""
    async with MockProvider() as mock:
        http = Http()
        mock.play(Trouble("no-answer"))
        with pytest.raises(ProviderError, match="within 50 ms") as caught:
            await http.get(f"{mock.url}/v1/messages", bytes_max=100, timeout_ms=50)
        await http.aclose()

    assert caught.value.kind == "timeout"


async def test_get_does_not_follow_or_remember() -> None:
    """A redirect is the answer, and cookies do not come back."""
    async with MockProvider() as mock:
        http = Http()
        mock.play(Raw((), 302, {"location": "/y", "set-cookie": "a=b"}), Raw((b"ok",), 200, {}))
        answer = await http.get(f"{mock.url}/x", bytes_max=100, timeout_ms=60_000)
        await http.get(f"{mock.url}/x", bytes_max=100, timeout_ms=60_000)
        await http.aclose()

    assert (answer.status, answer.headers["location"]) == (302, "/y")
    assert "cookie" not in mock.requests[1].headers


async def test_a_pinned_address_is_connected_to() -> None:
    """The connection goes to the pinned address; the name is only said."""
    async with MockProvider() as mock:
        http = Http()
        mock.play(Raw((b"ok",), 200, {}))
        port = mock.url.rpartition(":")[2]
        url = f"http://name.invalid:{port}/x?y=1"
        answer = await http.get(url, bytes_max=100, timeout_ms=60_000, pinned="127.0.0.1")
        await http.aclose()

    (request,) = mock.requests
    assert (answer.body, request.path, request.headers["host"]) == (b"ok", "/x?y=1", f"name.invalid:{port}")


def test_the_client_is_imported_late() -> None:
    """Importing the room does not import the HTTP client: plain commands must start fast."""
    script = (
        "import sys, holdfast.net.stream, holdfast.provider.wire.stream; assert 'httpx2' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_server_of_this_machine_that_does_not_run_is_asked_about_at_once(name: str) -> None:
    """Nobody listens there, and nobody will in half a minute: it is not tried again."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # Nobody else gets the port, and it does not listen.
        port = held.getsockname()[1]
        http = Http()
        with pytest.raises(ProviderError) as raised:
            await http.get(f"http://{name}:{port}/v1", bytes_max=100, timeout_ms=60_000)
        await http.aclose()
    assert str(raised.value) == f"nothing listens at {name}:{port}; is the server running?"
    assert (raised.value.kind, raised.value.retryable) == ("connection", False)
