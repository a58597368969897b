"""Provider hosts that the user logged in to: their settings, fetched or as they last were.

A host is asked again when its copy is older than `FRESH_MS`; while it does not answer, the copy holds, and
for as long again it is not asked. What must stay true: a host's token goes to that host only.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast.clock import SystemClock
from holdfast.config.documents.document import BYTES_MAX
from holdfast.config.loaded import Loaded
from holdfast.config.untrusted import well_known
from holdfast.config.untrusted.well_known import Remote
from holdfast.errors import ContextError, HoldfastError
from holdfast.net.last_good import Copy, LastGood
from holdfast.person import directories
from holdfast.provider.accounts.secret import Credential, HostToken, Secret

if TYPE_CHECKING:
    from holdfast.net.stream import Http  # only where a host is asked

FRESH_MS = 300_000
_OK = 200


def hosts_of(held: Mapping[str, Credential]) -> list[str]:
    """The hosts among the credentials; OpenCode writes them as addresses."""
    return sorted(_tokens_by_host(held))


def tokens(loaded: Loaded, held: Mapping[str, Credential]) -> dict[str, HostToken]:
    """The token of a host for each provider at its address, whichever settings chose that address."""
    known = _tokens_by_host(held)
    found = {}
    for id, entry in (loaded.config.provider or {}).items():
        if id in loaded.host_providers:
            found[id] = HostToken(known.get(loaded.host_providers[id]), only=True)
            continue
        address = entry.options.get("baseURL") or entry.api
        for host, secret in known.items():
            if isinstance(address, str) and well_known.is_own(address, host):
                found[id] = HostToken(secret, only=False)
    return found


def _tokens_by_host(held: Mapping[str, Credential]) -> dict[str, Secret]:
    """Tokens by host. OpenCode's come first, so that ours replace them."""
    wanted = sorted(
        (each for each in held.items() if each[1].type == "wellknown"),
        key=lambda each: each[1].origin == "file",
    )
    named = ((urlsplit(id).netloc if "://" in id else id, credential.secret) for id, credential in wanted)
    return {host: secret for host, secret in named if host}


async def settings_of(hosts: Iterable[str]) -> list[Remote]:
    """What the hosts answered, each at most `FRESH_MS` ago unless it does not answer."""
    now_ms = SystemClock().now_ms()
    copies = {host: _kept().get(host) for host in hosts}
    due = [host for host, copy in copies.items() if copy.is_due(now_ms, fresh_ms=FRESH_MS, quiet_ms=FRESH_MS)]
    if due:
        from holdfast.net.stream import Http

        http = Http()
        try:
            answers = await well_known.ask(due, _fetch(http))
        finally:
            await http.aclose()
        for host in due:
            copies[host] = (
                Copy(text=answers[host], fetched_ms=now_ms)
                if host in answers
                else replace(copies[host], failed_ms=now_ms)
            )
            with contextlib.suppress(HoldfastError, OSError):  # Then the next command asks again.
                _kept().put(host, copies[host])
    return [Remote(host, copy.text) for host, copy in copies.items() if copy.text is not None]


def keep(host: str, text: str) -> None:
    """Keep what a host has just answered."""
    _kept().put(host, Copy(text=text, fetched_ms=SystemClock().now_ms()))


def _kept() -> LastGood:
    return LastGood(directories.cache() / "hosts")


def _fetch(http: "Http") -> well_known.Fetch:
    async def fetch(url: str, /) -> bytes:
        answer = await http.get(url, bytes_max=BYTES_MAX, timeout_ms=int(well_known.WAIT_S * 1000))
        if answer.status != _OK:
            raise ContextError(f"{url} answers {answer.status}")
        return answer.body

    return fetch
