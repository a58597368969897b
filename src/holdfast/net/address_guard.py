"""Which addresses may be fetched on the word of another: a model's, a repository's, a remote config's.

A URL is looked at first (`check`), then its name is resolved and every address that it has is looked at
(`resolve`). The caller connects to an address that came out of here (`Http.get(pinned=…)`), so that a name
which answers differently the second time leads nowhere; and it checks each redirect again itself.

What must stay true: one forbidden address among many refuses the name, unless the caller permits it.
"""

from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

import anyio
import msgspec

from holdfast.errors import InvalidInput, Refused

RESOLVE_TIMEOUT_S = 10.0

_PORTS = {"http": 80, "https": 443}
_NAT64 = IPv6Network("64:ff9b::/96")
_SET_ASIDE = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))
"""For protocols and documentation; `ipaddress` takes them for public in some versions of Python."""

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host, as text."""
Permit = Callable[["Target", str, str], Awaitable[None]]
"""Returns where a host may be fetched although it leads to this address, not public for this reason."""


class Target(msgspec.Struct, frozen=True):
    """Where a URL leads."""

    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> str:
        """Scheme, host and port as they stand in a URL, the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")


def check(url: str) -> Target:
    """Where `url` leads, if it is plain http or https without a user name in it."""
    # Parsers disagree about these characters, and such a disagreement is how guards are walked around.
    if any(character <= " " or character in '\\"<>^`{|}\x7f' for character in url):
        raise InvalidInput("the address holds characters that no address may hold")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput("the address cannot be read") from error
    if parts.scheme not in _PORTS:
        raise Refused(f"only http and https addresses can be fetched, not {parts.scheme or 'this one'!r}")
    if parts.username is not None or parts.password is not None:
        raise Refused("an address with a user name or password in it is not fetched")
    if not parts.hostname:
        raise InvalidInput("the address names no host")
    return Target(parts.scheme, parts.hostname, port if port is not None else _PORTS[parts.scheme])


def forbidden(address: str) -> str | None:
    """Why an address is not public, or None. Addresses inside addresses (NAT64, 6to4 …) are unpacked."""
    try:
        ip = _unpacked(ip_address(address.partition("%")[0]))
    except ValueError:
        return "no address"
    if ip.is_loopback:
        return "this machine"
    if ip.is_link_local:
        return "link-local, where clouds keep their metadata"
    if ip.is_multicast:
        return "multicast"
    if any(ip in each for each in _SET_ASIDE):
        return "private or reserved"
    if not ip.is_global or ip.is_reserved or (isinstance(ip, IPv6Address) and ip.is_site_local):
        return "private or reserved"
    return None


async def system_resolver(host: str, port: int) -> list[str]:
    """The addresses that this machine finds."""
    found = await anyio.getaddrinfo(host, port)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def refuse(target: Target, address: str, why: str) -> None:
    """Permit nothing."""
    raise Refused(f"{target.host} leads to {address} ({why}), which is not fetched")


async def resolve(
    target: Target, *, permit: Permit = refuse, resolver: Resolver = system_resolver
) -> tuple[str, ...]:
    """The addresses of `target`: all of them public, or permitted."""
    try:
        with anyio.fail_after(RESOLVE_TIMEOUT_S):
            addresses = await resolver(target.host, target.port)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise Refused(f"{target.host} cannot be resolved") from error
    if not addresses:
        raise Refused(f"{target.host} has no address")
    for address in addresses:
        if (why := forbidden(address)) is not None:
            await permit(target, address, why)
    return tuple(addresses)


def _unpacked(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(ip, IPv4Address):
        return ip
    inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
    if inner is None and ip in _NAT64:
        inner = IPv4Address(int(ip) & 0xFFFFFFFF)
    return inner or ip
