"""Provider hosts that the person logged in to: their settings, fetched or as they last were.

A host is asked again when its copy is older than `FRESH_S`; while it does not answer, the copy holds, and for
as long again nobody waits for it. Copies lie in the cache directory, private, since a host may tell a
person's address. What must stay true: a host's token goes to that host only.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.config.documents.document import BYTES_MAX
from holdfast.config.loaded import Loaded
from holdfast.config.untrusted import well_known
from holdfast.config.untrusted.well_known import Remote
from holdfast.errors import ContextError, HoldfastError
from holdfast.person import directories, small_file
from holdfast.provider.accounts.secret import Credential, HostToken, Secret

if TYPE_CHECKING:
    from holdfast.net.stream import Http  # only where a host is asked

FRESH_S = 300.0
_OK = 200


def hosts_of(held: Mapping[str, Credential]) -> list[str]:
    """The hosts among the credentials; OpenCode writes them as addresses."""
    return sorted(_tokens_by_host(held))


def tokens(loaded: Loaded, held: Mapping[str, Credential]) -> dict[str, HostToken]:
    """The token of a host for each provider at its address, whoever chose that."""
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
    """OpenCode's come first, so that ours win."""
    wanted = sorted(
        (each for each in held.items() if each[1].type == "wellknown"),
        key=lambda each: each[1].origin == "file",
    )
    named = ((urlsplit(id).netloc if "://" in id else id, credential.secret) for id, credential in wanted)
    return {host: secret for host, secret in named if host}


async def settings_of(hosts: Iterable[str]) -> list[Remote]:
    """What the hosts say, each at most `FRESH_S` old unless it does not answer."""
    kept = Copies()
    found: dict[str, Remote | None] = {host: kept.recent(host) for host in hosts if kept.is_recent(host)}
    stale = [host for host in hosts if host not in found]
    if stale:
        from holdfast.net.stream import Http

        http = Http()
        try:
            found |= {each.host: each for each in await well_known.ask(stale, _fetch(http), kept)}
        finally:
            await http.aclose()
        for host in stale:
            answered = found.get(host)
            if answered is None or answered.stale:
                kept.failed(host)
    return [each for host in hosts if (each := found.get(host)) is not None]


def _fetch(http: "Http") -> well_known.Fetch:
    async def fetch(url: str, /) -> bytes:
        answer = await http.get(url, bytes_max=BYTES_MAX, timeout_ms=int(well_known.WAIT_S * 1000))
        if answer.status != _OK:
            raise ContextError(f"{url} answers {answer.status}")
        return answer.body

    return fetch


class Copies:
    """The last good copies, a file each."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or directories.cache() / "hosts"

    def is_recent(self, host: str) -> bool:
        """Whether the host need not be asked: its copy is young, or it did not answer a moment ago."""
        return self._is_young(self._failure(host)) or (
            self._is_young(self._path(host)) and self._read(host) is not None
        )

    def recent(self, host: str) -> Remote | None:
        """The copy as it is; None where the host never answered."""
        text = self._read(host)
        return None if text is None else Remote(host, text, stale=not self._is_young(self._path(host)))

    def failed(self, host: str) -> None:
        """Remember that the host did not answer, so that the next command does not wait for it too."""
        with contextlib.suppress(HoldfastError, OSError):
            small_file.write(self._failure(host), b"", mode=0o600)

    async def get(self, host: str, /) -> str | None:
        """The copy, however old."""
        return self._read(host)

    async def put(self, host: str, text: str, /) -> None:
        """Replace the copy."""
        self._failure(host).unlink(missing_ok=True)
        small_file.write(self._path(host), text.encode(), mode=0o600)

    def _read(self, host: str) -> str | None:
        try:
            data = small_file.read(self._path(host), bytes_max=BYTES_MAX)
            text = None if data is None else data.decode()
            if text is not None:
                well_known.document(Remote(host, text))
        except (HoldfastError, UnicodeDecodeError):
            return None
        return text

    def _path(self, host: str) -> Path:
        return self._folder / f"{sha256(host.encode()).hexdigest()[:32]}.json"

    def _failure(self, host: str) -> Path:
        return self._path(host).with_suffix(".failed")

    def _is_young(self, path: Path) -> bool:
        try:
            return 0 <= time.time() - path.stat().st_mtime < FRESH_S
        except OSError:
            return False
