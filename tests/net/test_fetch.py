"""Fetching what another named, against a real server on loopback."""

from collections.abc import AsyncIterator

import pytest

from holdfast.errors import ProviderError, Refused
from holdfast.net.address_guard import Target
from holdfast.net.fetch import REDIRECTS_MAX, Fetched, fetch
from holdfast.net.stream import Http
from holdfast.testing.mock_provider import MockProvider, Raw, Trouble

TEXT = {"content-type": "text/plain"}


class Way:
    """Names that all lead to this machine, and what was asked on the way."""

    def __init__(self, mock: MockProvider) -> None:
        self.mock = mock
        self.http = Http()
        self.port = int(mock.url.rsplit(":", 1)[1].split("/")[0])
        self.addresses = ["127.0.0.1"]
        self.resolved: list[str] = []
        self.followed: list[str] = []

    def url(self, host: str, path: str = "/x") -> str:
        return f"http://{host}:{self.port}{path}"

    async def resolver(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        return self.addresses

    async def permit(self, target: Target, address: str, why: str) -> None:
        if target.host.startswith("secret"):
            raise Refused(f"{target.host} is refused")

    async def follow(self, url: str, target: Target) -> None:
        self.followed.append(url)

    async def fetch(self, url: str, *, bytes_max: int = 1_000, timeout_ms: int = 5_000) -> Fetched:
        return await fetch(
            self.http,
            url,
            headers={},
            bytes_max=bytes_max,
            timeout_ms=timeout_ms,
            follow=self.follow,
            permit=self.permit,
            resolver=self.resolver,
        )


@pytest.fixture
async def way() -> AsyncIterator[Way]:
    async with MockProvider() as mock:
        made = Way(mock)
        yield made
        await made.http.aclose()


async def test_the_connection_goes_to_the_address_that_was_judged(way: Way) -> None:
    """A name is resolved once, by us; the server still learns which name was meant."""
    way.mock.play(Raw((b"yes",), 200, TEXT))
    fetched = await way.fetch(way.url("nowhere.invalid", "/a?b#c"))

    assert (fetched.url, fetched.answer.body) == (way.url("nowhere.invalid", "/a?b"), b"yes")
    assert way.resolved == ["nowhere.invalid"]
    (request,) = way.mock.requests
    assert request.headers["host"] == f"nowhere.invalid:{way.port}"
    assert request.headers["connection"] == "close"


async def test_a_public_name_is_needed_unless_permitted(way: Way) -> None:
    """Nothing is sent to what may not be reached."""
    with pytest.raises(Refused, match=r"secret\.invalid is refused"):
        await way.fetch(way.url("secret.invalid"))
    assert way.mock.requests == []


async def test_each_redirect_is_judged_anew(way: Way) -> None:
    """Also one that leads from an allowed host into the machine's own network, or to another scheme."""
    way.mock.play(Raw((), 302, {"location": "/two"}), Raw((), 307, {"location": way.url("secret.invalid")}))
    with pytest.raises(Refused, match=r"secret\.invalid is refused"):
        await way.fetch(way.url("one.invalid"))
    assert way.followed == [way.url("one.invalid", "/two"), way.url("secret.invalid")]
    assert len(way.mock.requests) == 2

    way.mock.play(Raw((), 302, {"location": "file:///etc/passwd"}))
    with pytest.raises(Refused, match="only http and https"):
        await way.fetch(way.url("one.invalid"))


async def test_redirects_have_an_end(way: Way) -> None:
    """A page that leads to itself is left."""
    way.mock.play(*[Raw((), 301, {"location": "/x"})] * (REDIRECTS_MAX + 1))
    with pytest.raises(Refused, match=f"more than {REDIRECTS_MAX} redirects"):
        await way.fetch(way.url("one.invalid"))
    assert way.mock.unplayed == ()


async def test_a_redirect_without_a_place_is_an_answer(way: Way) -> None:
    """It is the caller's to say what became of it."""
    way.mock.play(Raw((b"moved",), 301, TEXT))
    assert (await way.fetch(way.url("one.invalid"))).answer.status == 301


async def test_another_address_is_tried_where_one_cannot_be_reached(way: Way) -> None:
    """As a browser does; the last one's error counts."""
    way.addresses = ["127.0.0.9", "127.0.0.1"]
    way.mock.play(Raw((b"yes",), 200, TEXT))
    assert (await way.fetch(way.url("one.invalid"))).answer.body == b"yes"

    way.addresses = ["127.0.0.9", "127.0.0.8"]
    with pytest.raises(ProviderError) as caught:
        await way.fetch(way.url("one.invalid"))
    assert caught.value.kind == "connection"


@pytest.mark.ci
async def test_size_and_time_are_bounded(way: Way) -> None:
    """A body beyond its bound is an error; so is an answer that does not come, redirects counted together."""
    way.mock.play(Raw((b"x" * 60, b"x" * 60), 200, TEXT))
    with pytest.raises(ProviderError, match="more than 100 bytes"):
        await way.fetch(way.url("one.invalid"), bytes_max=100)
    way.mock.play(Raw((), 302, {"location": "/v1/messages"}), Trouble("no-answer"))
    with pytest.raises(ProviderError) as caught:
        await way.fetch(way.url("one.invalid"), timeout_ms=200)
    assert caught.value.kind == "timeout"
