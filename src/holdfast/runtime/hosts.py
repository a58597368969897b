"""Provider hosts that the person logged in to: their settings, fetched or as they last were.

A host is asked again when its copy is older than `FRESH_S`; while it does not answer, the copy holds. Copies
lie in the cache directory, private, since a host may tell a person's address.
"""

import time
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.config import well_known
from holdfast.config.document import BYTES_MAX
from holdfast.config.well_known import Remote
from holdfast.errors import ContextError, HoldfastError
from holdfast.net.stream import Http
from holdfast.person import directories, small_file
from holdfast.provider.secret import Credential

FRESH_S = 300.0
_OK = 200


def hosts_of(held: Mapping[str, Credential]) -> list[str]:
    """The hosts among the credentials; OpenCode writes them as addresses."""
    found = []
    for id, credential in held.items():
        if credential.type == "wellknown":
            found.append(urlsplit(id).netloc if "://" in id else id)
    return sorted(filter(None, found))


async def settings_of(hosts: Iterable[str]) -> list[Remote]:
    """What the hosts say, each at most `FRESH_S` old unless it does not answer."""
    kept = Copies()
    fresh = {host: text for host in hosts if (text := kept.fresh(host)) is not None}
    stale = [host for host in hosts if host not in fresh]
    asked: dict[str, Remote] = {}
    if stale:
        http = Http()
        try:
            asked = {each.host: each for each in await well_known.ask(stale, _fetch(http), kept)}
        finally:
            await http.aclose()
    return [
        Remote(host, fresh[host]) if host in fresh else asked[host]
        for host in hosts
        if host in fresh or host in asked
    ]


def _fetch(http: Http) -> well_known.Fetch:
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

    def fresh(self, host: str) -> str | None:
        """The copy, if it is young enough to be taken without asking."""
        try:
            age_s = time.time() - self._path(host).stat().st_mtime
        except OSError:
            return None
        return self._read(host) if 0 <= age_s < FRESH_S else None

    async def get(self, host: str, /) -> str | None:
        """The copy, however old."""
        return self._read(host)

    async def put(self, host: str, text: str, /) -> None:
        """Replace the copy."""
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
