"""Fetches what another named: a page whose address a model chose.

Each address on the way is checked, resolved and judged before it is connected to, and the connection goes to
the very address that was judged. What must stay true: no redirect leads where the first address might not;
the whole way, all redirects together, takes at most its time.
"""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urldefrag, urljoin

import anyio
import msgspec

from holdfast.errors import ProviderError, Refused
from holdfast.net import address_guard
from holdfast.net.address_guard import Permit, Resolver, Target
from holdfast.net.stream import Http, SmallAnswer

REDIRECTS_MAX: Final = 10
ADDRESSES_MAX: Final = 4
"""Tried one after the other where one cannot be connected to."""

_MOVED: Final = (301, 302, 303, 307, 308)

Follow = Callable[[str, Target], Awaitable[None]]
"""Returns where a redirect to an address may be followed."""


class Fetched(msgspec.Struct, frozen=True):
    """What came, and the address that it came from in the end."""

    url: str
    answer: SmallAnswer


async def fetch(
    http: Http,
    url: str,
    *,
    headers: dict[str, str],
    bytes_max: int,
    timeout_ms: int,
    follow: Follow,
    permit: Permit = address_guard.refuse,
    resolver: Resolver = address_guard.system_resolver,
) -> Fetched:
    """GET `url`, following redirects. The time does not count while `follow` and `permit` ask a user."""
    left_s = timeout_ms / 1000
    where = urldefrag(url).url
    for _ in range(REDIRECTS_MAX + 1):
        addresses = await address_guard.resolve(address_guard.check(where), permit=permit, resolver=resolver)
        began = anyio.current_time()
        answer = await _get(http, where, addresses, headers, bytes_max, timeout_ms=max(1, int(left_s * 1000)))
        left_s -= anyio.current_time() - began
        moved = answer.headers.get("location") if answer.status in _MOVED else None
        if moved is None:
            return Fetched(where, answer)
        where = urldefrag(urljoin(where, moved)).url
        await follow(where, address_guard.check(where))
    raise Refused(f"the address leads through more than {REDIRECTS_MAX} redirects")


async def _get(
    http: Http,
    url: str,
    addresses: tuple[str, ...],
    headers: dict[str, str],
    bytes_max: int,
    *,
    timeout_ms: int,
) -> SmallAnswer:
    """The answer of the first address that can be connected to, all tries together within the time."""
    *first, last = addresses[:ADDRESSES_MAX]

    async def get(address: str) -> SmallAnswer:
        return await http.get(
            url, bytes_max=bytes_max, timeout_ms=timeout_ms, headers=headers, pinned=address
        )

    try:
        with anyio.fail_after(timeout_ms / 1000):
            for address in first:
                try:
                    return await get(address)
                except ProviderError as error:
                    if error.kind != "connection":
                        raise
            return await get(last)
    except TimeoutError as error:
        host = address_guard.check(url).host
        raise ProviderError(f"{host} did not answer in time", kind="timeout") from error
