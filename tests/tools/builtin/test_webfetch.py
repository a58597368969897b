"""The tool `webfetch`, against a real server on loopback."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.net.stream import Http
from holdfast.testing.mock_provider import MockProvider, Raw
from holdfast.toolkit.output import Attachment, ToolDenied, ToolFailure, ToolOutput
from holdfast.tools.builtin import webfetch
from holdfast.tools.builtin.webfetch import webfetch_tool
from tests.tools.fake_context import Asked, FakeContext

HTML = {"content-type": "text/html; charset=utf-8"}
GIF = b"GIF89a" + bytes(20)


class Web:
    """A server under whatever name, and a call's world."""

    def __init__(self, mock: MockProvider, top: Path) -> None:
        self.mock = mock
        self.http = Http()
        self.context = FakeContext(top)
        self.resolved: list[str] = []
        self.tool = webfetch_tool(lambda: self.http, self.resolver)
        self.port = int(mock.url.rsplit(":", 1)[1].split("/")[0])

    def url(self, host: str = "h.invalid", path: str = "/a/b") -> str:
        return f"http://{host}:{self.port}{path}"

    async def resolver(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        return ["127.0.0.1"]

    async def run(self, url: str | None = None, **input: Any) -> ToolOutput:
        answer = await self.tool.run(self.context, {"url": url or self.url(), **input})
        assert isinstance(answer, ToolOutput)
        return answer

    async def fails(self, url: str | None = None, **input: Any) -> str:
        with pytest.raises(ToolFailure) as caught:
            await self.run(url, **input)
        return str(caught.value)


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with MockProvider() as mock:
        made = Web(mock, tmp_path)
        yield made
        await made.http.aclose()


async def test_a_page_is_markdown(web: Web) -> None:
    """The user is asked for the address, then for a machine of his own network, with its real address."""
    web.mock.play(Raw((b'<h1>Hi</h1><a href="c">there</a>',), 200, HTML))
    output = await web.run()

    assert output == ToolOutput(
        text=f"# Hi\n\n[there]({web.url(path='/a/c')})",
        title=f"{web.url()} (text/html)",
        metadata={"url": web.url(), "status": 200, "contentType": "text/html"},
    )
    origin = f"http://h.invalid:{web.port}"
    assert web.context.asked == [
        Asked(
            permission="webfetch",
            patterns=[web.url()],
            always=[f"{origin}/*"],
            metadata={"url": web.url()},
        ),
        Asked(
            permission="private_address",
            patterns=[origin],
            always=[origin],
            metadata={"url": origin, "address": "127.0.0.1", "why": "this machine"},
        ),
    ]
    assert web.mock.requests[0].headers["user-agent"].startswith("holdfast/")


@pytest.mark.parametrize(("denied", "resolved"), [("webfetch", []), ("private_address", ["h.invalid"])])
async def test_what_is_denied_is_not_reached(web: Web, denied: str, resolved: list[str]) -> None:
    """A denied address is not even looked up; nothing is sent to a machine that may not be reached."""
    web.context.denies = (denied,)
    with pytest.raises(ToolDenied):
        await web.run()
    assert (web.resolved, web.mock.requests) == (resolved, [])


async def test_redirects_ask_for_another_host_only(web: Web) -> None:
    """On the same host a rule that denies still counts."""
    web.mock.play(
        Raw((), 302, {"location": "/two"}),
        Raw((), 302, {"location": web.url("other.invalid", "/three")}),
        Raw((b"done",), 200, {"content-type": "text/plain"}),
    )
    output = await web.run()
    assert (output.text, output.title) == ("done", f"{web.url('other.invalid', '/three')} (text/plain)")
    asked = [each.patterns for each in web.context.asked if each.permission == "webfetch"]
    assert asked == [[web.url()], [web.url("other.invalid", "/three")]]

    web.context.verdicts = {web.url(path="/two"): "deny"}
    web.mock.play(Raw((), 302, {"location": "/two"}))
    assert await web.fails() == (
        f"The rules deny webfetch for {web.url(path='/two')}, where the address leads."
    )


@pytest.mark.parametrize(
    ("input", "body", "kind", "text"),
    [
        ({"format": "html"}, b"<p>x</p>", "text/html", "<p>x</p>"),
        ({"format": "text"}, b"<p>a <b>b</b></p>", "text/html", "a b"),
        ({}, b'{"a": 1}', "application/json", '{"a": 1}'),
        ({}, b"<html><p>x</p></html>", "", "x"),
        ({}, b"<p>x</p>", "text/plain", "<p>x</p>"),
        ({}, "ä".encode("latin-1"), "text/plain; charset=ISO-8859-1", "ä"),
        ({}, b'<meta charset="latin-1"><p>\xe4</p>', "text/html", "ä"),
        ({}, "ä".encode("utf-16"), "text/plain", "ä"),
        ({}, "ä".encode(), "text/plain; charset=no-such", "ä"),
        ({}, "ä".encode(), "text/plain; charset=hex", "ä"),
        ({}, b"\xef\xbb\xbfx", "text/plain", "x"),
        ({}, b"", "text/html", "(The page holds no text.)"),
    ],
)
async def test_text_in_its_forms(web: Web, input: dict[str, str], body: bytes, kind: str, text: str) -> None:
    """Pages as asked for; other text as it is; whatever encoding it names, or falsely names."""
    web.mock.play(Raw((body,), 200, {"content-type": kind} if kind else {}))
    assert (await web.run(**input)).text == text


async def test_a_picture_is_attached(web: Web) -> None:
    """What its bytes are, whatever the server calls it."""
    web.mock.play(Raw((GIF,), 200, {"content-type": "application/octet-stream"}))
    output = await web.run(web.url(path="/cat.gif"))
    assert output.attachments == (
        Attachment(
            mime="image/gif",
            url="data:image/gif;base64,R0lGODlhAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            filename="cat.gif",
        ),
    )


async def test_what_cannot_be_shown_is_refused_in_words(web: Web) -> None:
    """With what it is, or what the server said."""
    web.mock.play(Raw((b"\0\1",), 200, {"content-type": "application/zip"}))
    assert await web.fails() == (
        f"{web.url()} is no text but application/zip of 2 bytes. Use a program that reads this format."
    )
    web.mock.play(Raw((b"no such\npage",), 404, {"content-type": "text/plain"}))
    assert await web.fails() == f"{web.url()} answered 404. no such page"
    web.mock.play(Raw((b"<h1>Oh</h1>",), 500, HTML))
    assert await web.fails() == f"{web.url()} answered 500."


async def test_too_much_is_refused(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large answer is left; nothing of it is shown."""
    monkeypatch.setattr(webfetch, "BYTES_MAX", 10)
    web.mock.play(Raw((b"x" * 11,), 200, HTML))
    assert await web.fails() == (
        f"{web.url()} could not be fetched: h.invalid answered with more than 10 bytes."
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:///etc/passwd", "only http and https addresses can be fetched"),
        ("http://u:p@h/", "with a user name or password"),
        ("h.org", "only http and https"),
        ("http://h\\@g/", "characters that no address may hold"),
    ],
)
async def test_what_is_no_address_asks_nobody(web: Web, url: str, said: str) -> None:
    """The model learns what is wrong with it."""
    assert said in await web.fails(url)
    assert web.context.asked == []


@pytest.mark.parametrize("input", [{"timeout": 0}, {"timeout": 121}, {"format": "pdf"}])
async def test_bad_arguments(web: Web, input: dict[str, Any]) -> None:
    """They are named."""
    assert next(iter(input)) in await web.fails(**input)
