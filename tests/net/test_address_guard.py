"""What may be fetched on somebody else's word."""

import pytest

from holdfast.errors import CallerError, Refused
from holdfast.net import address_guard
from holdfast.net.address_guard import Target


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://host/x",
        "gopher://host",
        "//host/x",
        "host/x",
        "",
        "http://",
        "http:///x",
        "http://user@host/",
        "http://user:word@host/",
        "http://host:99999/",
        "http://host:x/",
        "http://[::1/",
        "http://a\\@b/",
        "http://a b/",
        "http://a\n.b/",
        "http://a\x00/",
    ],
)
def test_what_is_no_plain_address_is_refused(url: str) -> None:
    """Other schemes, names of users and characters that parsers read differently end here."""
    with pytest.raises(CallerError):
        address_guard.check(url)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://Example.org/x?y", Target("https", "example.org", 443)),
        ("HTTP://example.org:8080", Target("http", "example.org", 8080)),
        ("http://[2001:db8::1]:81/", Target("http", "2001:db8::1", 81)),
    ],
)
def test_a_plain_address_is_read(url: str, target: Target) -> None:
    """Scheme, host and port, with the scheme's own port where none is said."""
    assert address_guard.check(url) == target


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1", "this machine"),
        ("127.8.9.1", "this machine"),
        ("::1", "this machine"),
        ("::ffff:127.0.0.1", "this machine"),
        ("64:ff9b::7f00:1", "this machine"),
        ("2002:7f00:0001::", "this machine"),
        ("0.0.0.0", "private or reserved"),
        ("::", "private or reserved"),
        ("10.1.2.3", "private or reserved"),
        ("172.16.0.1", "private or reserved"),
        ("192.168.1.1", "private or reserved"),
        ("::ffff:10.0.0.1", "private or reserved"),
        ("100.64.0.1", "private or reserved"),
        ("240.0.0.1", "private or reserved"),
        ("255.255.255.255", "private or reserved"),
        ("192.0.0.8", "private or reserved"),
        ("192.88.99.1", "private or reserved"),
        ("3fff::1", "private or reserved"),
        ("fc00::1", "private or reserved"),
        ("fec0::1", "private or reserved"),
        ("fd12:3456::1", "private or reserved"),
        ("169.254.169.254", "link-local, where clouds keep their metadata"),
        ("fe80::1%eth0", "link-local, where clouds keep their metadata"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("nonsense", "no address"),
        ("93.184.216.34", None),
        ("2606:4700::1111", None),
        ("::ffff:93.184.216.34", None),
    ],
)
def test_addresses_are_told_apart(address: str, why: str | None) -> None:
    """Only public addresses pass, also when they are wrapped in another family."""
    assert address_guard.forbidden(address) == why


async def test_one_bad_address_refuses_the_name() -> None:
    """A name with a public and a private address is refused, unless the caller permits the private one."""

    async def resolver(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    target = address_guard.check("http://mixed.example/")
    with pytest.raises(Refused, match=r"mixed\.example leads to 10\.0\.0\.1"):
        await address_guard.resolve(target, resolver=resolver)
    permitted = []

    async def permit(target: Target, address: str, why: str) -> None:
        permitted.append((target, address, why))

    allowed = await address_guard.resolve(target, resolver=resolver, permit=permit)
    assert allowed == ("93.184.216.34", "10.0.0.1")
    assert permitted == [(target, "10.0.0.1", "private or reserved")]


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f.1"])
async def test_other_spellings_of_this_machine_are_refused(host: str) -> None:
    """What the system's resolver makes of a name is what counts."""
    with pytest.raises(Refused):
        await address_guard.resolve(address_guard.check(f"http://{host}/"))


async def test_a_name_without_address_is_refused() -> None:
    """No address and a failing resolver are refusals with the host's name."""

    async def nothing(host: str, port: int) -> list[str]:
        return []

    async def broken(host: str, port: int) -> list[str]:
        raise OSError("no such host")

    for resolver in (nothing, broken):
        with pytest.raises(Refused, match="nowhere"):
            await address_guard.resolve(address_guard.check("http://nowhere/"), resolver=resolver)
