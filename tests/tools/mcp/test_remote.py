"""Remote servers: over streamable HTTP, over SSE, by the newer protocol, and when they go away."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from holdfast.schema.program_entry import McpEntry
from holdfast.toolkit.output import ToolOutput
from holdfast.tools.mcp import keeper as keeping
from holdfast.tools.mcp.server import Server
from tests.tools.mcp.servers import PATIENT_MS, Servers, servers
from tests.tools.mcp.web_servers import OldOnly, served, tools
from tests.until import until


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers(tmp_path) as found:
        yield found


def entry(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "remote", "url": url, "timeout": PATIENT_MS, **more}


def echoed(text: str) -> ToolOutput:
    said = f"echo: {text}"
    return ToolOutput(text=said, title="web_echo", structured={"result": said})


@pytest.mark.ci
@pytest.mark.parametrize("newer", [False, True])
async def test_a_server_is_spoken_to_over_http(made: Servers, newer: bool) -> None:
    """In the protocol that it knows: tools, resources, and a list that changes."""
    app = tools(newer=newer).streamable_http_app()
    async with served(OldOnly(app) if newer else app) as url:
        await made.connect({"web": entry(f"{url}/mcp"), "other": entry(f"{url}/mcp")})
        assert made.states == dict.fromkeys(("other", "web"), ("connected", None))
        assert made.here.keepers["web"].version == ("2026-07-28" if newer else "2025-11-25")
        assert await made.call("web_echo", text="x") == echoed("x")
        read = await made.call("read_mcp_resource", server="web", uri="web://page")
        assert read == ToolOutput(text="the page", title="web://page")
        # A newer server tells of a change whoever listens, others only the one who caused it.
        await made.call("other_grow" if newer else "web_grow")
        await until(lambda: "web_more" in made.names())
        await made.connect({})


@pytest.mark.ci
async def test_a_server_that_knows_only_sse_is_spoken_to_by_that(made: Servers) -> None:
    """It refuses the post with which streamable HTTP begins."""
    async with served(tools().sse_app()) as url:
        await made.connect({"web": entry(f"{url}/sse")})

        assert made.states == {"web": ("connected", None)}
        assert await made.call("web_echo", text="x") == echoed("x")
        await made.connect({})


@pytest.mark.ci
async def test_a_server_that_goes_away_fails_by_name_and_comes_back(
    made: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tools stay; once it is there again, it is connected by itself."""
    monkeypatch.setattr(keeping, "PAUSE_S", 0.05)
    monkeypatch.setattr(keeping, "PAUSE_S_MAX", 0.05)
    async with served(tools().streamable_http_app()) as url:
        await made.connect({"web": entry(f"{url}/mcp")})
    said = await made.failure("web_echo", text="x")
    assert said.startswith(("The MCP server web left during the call", "The MCP server web is not connected"))
    await until(lambda: made.states["web"][0] == "failed")
    assert "web_echo" in made.names()
    async with served(tools().streamable_http_app(), port=urlsplit(url).port or 0):
        await until(lambda: made.states["web"][0] == "connected")
        assert await made.call("web_echo", text="x") == echoed("x")
        await made.connect({})


@pytest.mark.ci
async def test_headers_of_the_settings_go_to_the_server_and_nowhere_else(made: Servers) -> None:
    """A redirect to another origin is not followed."""
    seen: list[str | None] = []

    async def elsewhere(request: Request) -> Response:
        seen.append("elsewhere")
        return Response(status_code=500)

    async def here(request: Request) -> Response:
        seen.append(request.headers.get("x-key"))
        return RedirectResponse(f"{other}/mcp", status_code=307)

    async with (
        served(Starlette(routes=[Route("/mcp", elsewhere, methods=["POST", "GET"])])) as other,
        served(Starlette(routes=[Route("/mcp", here, methods=["POST"])])) as url,
    ):
        await made.connect({"web": entry(f"{url}/mcp", headers={"x-key": "k"})})

    assert made.states["web"][0] == "failed"
    assert set(seen) == {"k"}


@pytest.mark.ci
async def test_a_very_long_answer_is_not_read_to_its_end(made: Servers) -> None:
    """Nor one that is compressed, which was not asked for."""
    reads: list[int] = []

    async def long() -> AsyncIterator[bytes]:
        reads.append(0)
        for _ in range(100):
            reads[-1] += 1 << 20
            yield b"x" * (1 << 20)
            await anyio.sleep(0)

    async def flood(request: Request) -> Response:
        return StreamingResponse(long(), media_type="application/json")

    async def packed(request: Request) -> Response:
        return Response(b"", headers={"content-encoding": "gzip"}, media_type="application/json")

    routes = [Route("/flood", flood, methods=["POST"]), Route("/packed", packed, methods=["POST"])]
    async with served(Starlette(routes=routes)) as url:
        await made.connect({"flood": entry(f"{url}/flood"), "packed": entry(f"{url}/packed")})

    first = {given["server"]: given["error"] for kind, given in reversed(made.events) if kind == "mcp.status"}
    assert "more than 16 MiB" in first["flood"]
    assert "compresses its answers" in first["packed"]
    assert max(reads) < 64 << 20


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize(("count", "state"), [(10, "connected"), (250_000, "failed")])
async def test_millions_of_small_values_are_not_decoded(
    made: Servers, kind: str, count: int, state: str
) -> None:
    """They would stop everything else for seconds, in an answer or in an event."""

    async def answer(request: Request) -> Response:
        message = await request.json() if request.method == "POST" else {}
        if message.get("method") != "initialize":
            return Response(status_code=405)
        facts = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"experimental": {"many": {"x": [[]] * count}}},
        }
        result = {**facts, "serverInfo": {"name": "x", "version": "1"}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return Response(f"data: {body}\n\n" if "event" in kind else body, media_type=kind)

    app = Starlette(routes=[Route("/mcp", answer, methods=["POST", "GET", "DELETE"])])
    async with served(app) as url:
        await made.connect({"web": entry(f"{url}/mcp")})
        assert made.states["web"][0] == state
        await made.connect({})


@pytest.mark.ci
async def test_nothing_that_listens_and_no_address_at_all(made: Servers) -> None:
    """Each says why."""
    async with served(Starlette()) as url:
        pass
    await made.connect({"gone": entry(f"{url}/mcp"), "odd": entry("ftp://example.invalid")})

    assert made.states["gone"][0] == "failed"
    assert made.states["odd"] == ("failed", "its address is none of http or https")


@pytest.mark.ci
async def test_a_server_that_lets_nobody_in_without_a_token(
    made: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs a sign-in, unless the user has switched that off; it is not asked again and again."""
    monkeypatch.setattr(keeping, "PAUSE_S", 0.01)
    asked: list[str] = []

    async def refuse(request: Request) -> Response:
        asked.append(request.url.path)
        return JSONResponse({}, status_code=401)

    async with served(Starlette(routes=[Route("/{name}", refuse, methods=["POST"])])) as url:
        await made.connect({"web": entry(f"{url}/web"), "key": entry(f"{url}/key", oauth=False)})
        await until(lambda: asked.count("/key") > 3)
        states = made.states

    assert asked.count("/web") == 1
    assert states == {
        "web": ("needs_auth", "`holdfast mcp auth web` signs you in"),
        "key": ("failed", "it answers 401, and `oauth` is off for it; set the header that it wants"),
    }


@pytest.mark.ci
async def test_a_server_that_is_silent_is_waited_for_no_longer_than_its_bound(made: Servers) -> None:
    """Also by HTTP."""

    async def hang(request: Request) -> Response:
        await anyio.sleep(30)
        return Response()

    async with served(Starlette(routes=[Route("/mcp", hang, methods=["POST"])])) as url:
        server = Server(name="web", entry=McpEntry(**entry(f"{url}/mcp")), connect_s=0.2)
        await made.connect({"web": server})
        assert made.states == {"web": ("failed", "it did not answer within 0.2 s")}
        await made.connect({})


@pytest.mark.ci
async def test_an_answer_that_is_none_leaves_it_open_what_was_done(made: Servers) -> None:
    """A gateway that gave up, a page in the place of an answer; to a greeting, the number is the reason."""
    other = {"gateway": Response(status_code=502), "page": Response("<p>", media_type="text/html")}

    async def answer(request: Request) -> Response:
        message = await request.json() if request.method == "POST" else {}
        match message.get("method"):
            case "initialize":
                facts = {"capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
                result: Any = {"protocolVersion": message["params"]["protocolVersion"], **facts}
            case "tools/list":
                result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in other]}
            case "tools/call":
                return other[message["params"]["name"]]
            case _:
                return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def refuse(request: Request) -> Response:
        return Response(status_code=403)

    routes = [Route("/mcp", answer, methods=["POST", "GET"]), Route("/no", refuse, methods=["POST"])]
    async with served(Starlette(routes=routes)) as url:
        await made.connect({"web": entry(f"{url}/mcp"), "no": entry(f"{url}/no")})
        said = [await made.failure(f"web_{name}") for name in other]
        states = made.states
        await made.connect({})

    unknown = "Whether it took effect is unknown: look before you repeat it."
    head = "What the MCP server web answered cannot be read:"
    assert said == [
        f"{head} Server returned an error response (HTTP 502). {unknown}",
        f"{head} Unexpected content type: text/html; charset=utf-8 (HTTP 200). {unknown}",
    ]
    assert states == {"web": ("connected", None), "no": ("failed", "it answers HTTP 403")}


@pytest.mark.ci
async def test_what_stays_on_this_machine_goes_through_no_proxy_and_carries_no_cookie(
    made: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of the environment that is not there would fail it; a cookie would mark the user."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    cookies: list[str | None] = []

    async def answer(request: Request) -> Response:
        cookies.append(request.headers.get("cookie"))
        message = await request.json() if request.method == "POST" else {}
        facts = {"capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        body = {
            "jsonrpc": "2.0",
            "id": message.get("id"),
            "result": {"protocolVersion": "2025-06-18", **facts},
        }
        made_here = Response(status_code=202) if "id" not in message else JSONResponse(body)
        made_here.set_cookie("who", "you")
        return made_here

    async with served(Starlette(routes=[Route("/mcp", answer, methods=["POST", "GET"])])) as url:
        await made.connect({"web": entry(f"{url}/mcp")})
        states = made.states
        await made.connect({})

    assert states == {"web": ("connected", None)}
    assert len(cookies) > 1
    assert set(cookies) == {None}


@pytest.mark.ci
async def test_a_server_that_does_not_let_go_of_its_session_is_connected_again(
    made: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has forgotten the session, and does not answer when it is asked to end it."""
    monkeypatch.setattr(keeping, "LEAVE_S", 0.05)
    monkeypatch.setattr(keeping, "PAUSE_S", 0.01)
    asked: list[str] = []

    async def answer(request: Request) -> Response:
        if request.method != "POST":
            await (anyio.sleep_forever() if request.method == "DELETE" else anyio.sleep(0))
            return Response(status_code=405)
        message = await request.json()
        asked.append(message["method"])
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": message.get("params", {}).get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "forgetful", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]},
        }
        if message["method"] not in results:
            return Response(status_code=202 if "id" not in message else 404)
        answered = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
        return JSONResponse(answered, headers={"mcp-session-id": "one"})

    app = Starlette(routes=[Route("/mcp", answer, methods=["POST", "GET", "DELETE"])])
    async with served(app) as url:
        await made.connect({"web": entry(f"{url}/mcp")})
        said = await made.failure("web_go")
        await until(lambda: asked.count("initialize") == 2)
        await made.connect({})

    assert said == "The MCP server web refused the call: Session terminated."
