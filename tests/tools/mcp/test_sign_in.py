"""Signing in to a remote server: a browser, a maker of tokens and a server of our own, on this machine."""

import stat
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from msgspec.structs import replace

from holdfast.clock import SystemClock
from holdfast.errors import ContextError, InvalidInput
from holdfast.schema.program_entry import McpEntry, McpOAuth
from holdfast.toolkit.output import ToolOutput
from holdfast.tools.mcp import accounts
from holdfast.tools.mcp.accounts import Account
from holdfast.tools.mcp.server import Server
from holdfast.tools.mcp.wire import sign_in as signing
from holdfast.tools.mcp.wire.sign_in import NeedsRegistration, sign_in
from tests.tools.mcp.servers import Servers, servers
from tests.tools.mcp.web_servers import TokenMaker, served, tools
from tests.until import until

CLOCK = SystemClock()


class Guarded:
    """A server that lets only users in that it knows."""

    def __init__(self, url: str, maker: TokenMaker) -> None:
        self.url = f"{url}/mcp"
        self.maker = maker

    def server(self, **oauth: Any) -> Server:
        settings = McpOAuth(**oauth) if oauth else None
        entry = McpEntry(type="remote", url=self.url, oauth=settings)
        return Server(name="web", entry=entry, connect_s=60)


@pytest.fixture
async def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Guarded]:
    """The server, and a home without any account."""
    monkeypatch.setenv("HOME", str(tmp_path))
    maker = TokenMaker(tools().streamable_http_app())
    async with served(maker.app) as url:
        yield Guarded(url, maker)


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers(tmp_path) as found:
        yield found


async def browse(url: str) -> None:
    """What the user's browser does: it goes where it is sent."""
    async with httpx2.AsyncClient(follow_redirects=True) as http:
        assert (await http.get(url)).status_code == 200


async def signed_in(guarded: Guarded, **oauth: Any) -> Account:
    """An account that is kept."""
    account = await sign_in(guarded.server(**oauth), browse, CLOCK)
    accounts.save("web", account)
    return account


async def called(made: Servers, guarded: Guarded) -> object:
    """What a call answers, over a new connection; or the state where there is none."""
    await made.connect({})
    await made.connect({"web": guarded.server()})
    if made.states["web"][0] != "connected":
        return made.states["web"]
    given = await made.call("web_echo", text="x")
    await made.connect({})
    assert isinstance(given, ToolOutput)
    return given.text


@pytest.mark.ci
async def test_a_user_signs_in_once_and_is_let_in(made: Servers, guarded: Guarded) -> None:
    """A client is registered, the code is proven by its challenge, and the account is the user's alone."""
    assert await called(made, guarded) == ("needs_auth", "`holdfast mcp auth web` signs you in")

    account = await signed_in(guarded)

    assert await called(made, guarded) == "echo: x"
    assert (account.client_id, account.token_url) == ("client-0", guarded.url.replace("/mcp", "/token"))
    assert account.access not in repr(account)
    file = accounts.our_file()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (asked,) = guarded.maker.asked
    assert (asked["code_challenge_method"], asked["response_type"]) == ("S256", "code")
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")


@pytest.mark.ci
async def test_a_token_that_has_ended_is_renewed_and_kept(made: Servers, guarded: Guarded) -> None:
    """Before it is used; the server gives another to renew with, and that one counts from then on."""
    account = await signed_in(guarded)
    accounts.save("web", replace(account, expires_ms=CLOCK.now_ms() + 1_000))

    assert await called(made, guarded) == "echo: x"

    kept = accounts.find(guarded.server())
    assert kept is not None
    assert kept.access != account.access
    assert kept.refresh == guarded.maker.refreshes[-1]
    assert not kept.is_over(CLOCK.now_ms())


@pytest.mark.ci
async def test_a_token_that_is_not_taken_any_more_is_renewed(made: Servers, guarded: Guarded) -> None:
    """Whatever it said of its end."""
    await signed_in(guarded)
    guarded.maker.end_tokens()

    assert await called(made, guarded) == "echo: x"


@pytest.mark.ci
async def test_what_cannot_be_renewed_needs_a_sign_in(made: Servers, guarded: Guarded) -> None:
    """The old token is not tried for ever."""
    account = await signed_in(guarded)
    accounts.save("web", replace(account, refresh="stolen", expires_ms=0))
    guarded.maker.end_tokens()

    assert await called(made, guarded) == ("needs_auth", "`holdfast mcp auth web` signs you in")


@pytest.mark.ci
async def test_a_user_who_is_not_known_any_more_reads_what_to_do(made: Servers, guarded: Guarded) -> None:
    """In the middle of a connection: the call fails, and the state says so."""
    await signed_in(guarded)
    await made.connect({"web": guarded.server()})
    guarded.maker.end_tokens()
    guarded.maker.refreshes.clear()

    said = await made.failure("web_echo", text="x")

    assert said == "The MCP server web refused the call: it wants a sign-in: `holdfast mcp auth web`."
    await until(lambda: made.states["web"][0] == "needs_auth")
    await made.connect({})


@pytest.mark.ci
async def test_a_token_that_another_process_renewed_is_used(made: Servers, guarded: Guarded) -> None:
    """A server that takes each renewal once would let nobody in otherwise."""
    account = await signed_in(guarded)
    await made.connect({"web": guarded.server()})
    guarded.maker.end_tokens()
    guarded.maker.valid.add("from-elsewhere")
    accounts.save("web", replace(account, access="from-elsewhere"))

    given = await made.call("web_echo", text="x")

    assert isinstance(given, ToolOutput)
    assert given.text == "echo: x"
    assert guarded.maker.refreshes == [account.refresh]
    await made.connect({})


@pytest.mark.ci
async def test_a_token_goes_to_its_own_address_only(guarded: Guarded) -> None:
    """An entry of the same name that leads elsewhere has no account; forgotten is forgotten."""
    account = await signed_in(guarded)
    other = Server(name="web", entry=McpEntry(type="remote", url="http://127.0.0.1:9/mcp"))

    assert (accounts.find(guarded.server()), accounts.find(other)) == (account, None)
    assert (accounts.forget("web"), accounts.forget("web")) == (True, False)
    assert accounts.find(guarded.server()) is None


@pytest.mark.ci
async def test_an_answer_of_another_sign_in_is_not_taken(guarded: Guarded) -> None:
    """A page in the same browser may guess the port, but not the state."""
    codes = []

    async def forged_first(url: str) -> None:
        query = parse_qs(urlsplit(url).query)
        async with httpx2.AsyncClient() as http:
            forged = await http.get(f"{query['redirect_uri'][0]}?code=evil&state=guess")
        codes.append(forged.status_code)
        await browse(url)

    account = await sign_in(guarded.server(), forged_first, CLOCK)

    assert codes == [404]
    assert account.access in guarded.maker.valid


@pytest.mark.ci
async def test_a_refusal_in_the_browser_ends_the_sign_in(guarded: Guarded) -> None:
    """With the words of the one who refused."""

    async def refuse(url: str) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        where = f"{query['redirect_uri']}?error=access_denied&state={query['state']}"
        async with httpx2.AsyncClient() as http:
            await http.get(where)

    with pytest.raises(ContextError, match="the sign-in was refused: access_denied"):
        await sign_in(guarded.server(), refuse, CLOCK)


@pytest.mark.ci
async def test_nobody_in_the_browser(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends by itself."""
    monkeypatch.setattr(signing, "WAIT_S", 0.05)

    async def look_away(url: str) -> None: ...

    with pytest.raises(ContextError, match="nobody signed in within"):
        await sign_in(guarded.server(), look_away, CLOCK)


@pytest.mark.ci
async def test_no_token_goes_where_others_can_read_it(guarded: Guarded) -> None:
    """Only https, and this machine."""
    open_ = Server(name="web", entry=McpEntry(type="remote", url="http://example.invalid/mcp"))
    with pytest.raises(ContextError, match="web is not reached by https"):
        await sign_in(open_, browse, CLOCK)


@pytest.mark.ci
async def test_a_client_and_a_scope_that_the_settings_name(guarded: Guarded) -> None:
    """Nothing is registered then; without them the user reads what to do."""
    guarded.maker.registers = False
    with pytest.raises(NeedsRegistration, match=r"set `oauth.clientId`"):
        await sign_in(guarded.server(), browse, CLOCK)

    account = await sign_in(guarded.server(client_id="mine", scope="read write"), browse, CLOCK)

    assert (account.client_id, guarded.maker.clients) == ("mine", {})
    assert guarded.maker.asked[-1]["scope"] == "read write"


@pytest.mark.ci
async def test_a_user_who_signs_out_is_signed_out_everywhere(made: Servers, guarded: Guarded) -> None:
    """A process that still has the token does not renew it, and keeps none for the user."""
    await signed_in(guarded)
    await made.connect({"web": guarded.server()})
    accounts.forget("web")
    guarded.maker.end_tokens()

    said = await made.failure("web_echo", text="x")

    assert said == "The MCP server web refused the call: it wants a sign-in: `holdfast mcp auth web`."
    assert (guarded.maker.renewals, accounts.find(guarded.server())) == (0, None)
    await made.connect({})


@pytest.mark.ci
async def test_a_renewal_replaces_no_other_account(guarded: Guarded) -> None:
    """The user has signed in to another address by the same name, or signed out."""
    account = await signed_in(guarded)
    renewed, other = replace(account, access="renewed"), replace(account, url="https://b.test", access="b")

    accounts.renew("web", account, renewed)
    assert accounts.find(guarded.server()) == renewed
    accounts.save("web", other)
    accounts.renew("web", account, renewed)
    assert accounts.find(Server(name="web", entry=McpEntry(type="remote", url="https://b.test"))) == other
    accounts.forget("web")
    accounts.renew("web", account, renewed)
    assert accounts.find(guarded.server()) is None


@pytest.mark.ci
async def test_two_processes_renew_a_token_once(tmp_path: Path, made: Servers, guarded: Guarded) -> None:
    """A careful server ends both tokens when one is renewed twice. Some write the time as a text."""
    guarded.maker.expires_in = "3600"
    await signed_in(guarded)
    async with servers(tmp_path / "other") as others:
        for each in (made, others):
            await each.connect({"web": guarded.server()})
        guarded.maker.end_tokens()
        guarded.maker.holds = guarded.maker.refused + 2

        async with anyio.create_task_group() as group:
            for each in (made, others):
                group.start_soon(partial(each.call, "web_echo", text="x"))

        assert guarded.maker.renewals == 1
        kept = accounts.find(guarded.server())
        assert kept is not None
        assert {kept.access} == guarded.maker.valid
        assert not kept.is_over(CLOCK.now_ms())
        await others.connect({})
    await made.connect({})


@pytest.mark.ci
async def test_a_token_is_made_where_nobody_else_reads_it(guarded: Guarded) -> None:
    """A server names where: only https, and this machine for a server of this machine."""
    guarded.maker.tokens_at = "http://tokens.invalid/token"
    with pytest.raises(ContextError, match=r"web sends the sign-in to http://tokens.invalid, which is not"):
        await sign_in(guarded.server(), browse, CLOCK)

    far = Server(name="far", entry=McpEntry(type="remote", url="https://far.invalid/mcp"))
    with pytest.raises(ContextError, match=r"far sends the sign-in to http://127.0.0.1, which is not"):
        signing._check_way(far, "http://127.0.0.1:8080/token")
    signing._check_way(far, "https://tokens.invalid/token")


@pytest.mark.ci
@pytest.mark.parametrize("redirect", ["nowhere", "http://127.0.0.1:port/", "http://127.0.0.1:99999/"])
async def test_an_answer_that_could_go_nowhere(guarded: Guarded, redirect: str) -> None:
    """The settings name no address; the user reads which setting."""
    with pytest.raises(InvalidInput, match=r"`oauth.redirectUri` of web is no address"):
        await sign_in(guarded.server(redirect_uri=redirect), browse, CLOCK)


@pytest.mark.ci
async def test_a_server_that_is_silent_before_the_browser_is_opened(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user is not kept waiting for as long as they themselves may take."""
    monkeypatch.setattr(signing, "ANSWER_S", 0.05)
    guarded.maker.silent = True
    with (
        anyio.fail_after(20),
        pytest.raises(ContextError, match="web did not let you sign in: it did not an"),
    ):
        await sign_in(guarded.server(), browse, CLOCK)
