"""Whom the HTTP clients believe: a real server with a certificate of its own, on loopback."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holdfast.errors import ProviderError
from holdfast.net import trusted
from holdfast.net.stream import Http
from holdfast.schema.program_entry import McpEntry
from holdfast.tools.mcp.server import Server
from holdfast.tools.mcp.wire import remote


def certificate(folder: Path, name: str) -> Path:
    """A certificate that vouches for itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


@asynccontextmanager
async def server(file: Path, heard: list[bytes]) -> AsyncIterator[str]:
    """Answers "ok" to whoever accepts its certificate, and notes what it was sent."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as listening:
        yield f"https://localhost:{listening.sockets[0].getsockname()[1]}/"


async def body_of(url: str) -> bytes:
    http = Http()
    try:
        return (await http.get(url, bytes_max=100, timeout_ms=20_000)).body
    finally:
        await http.aclose()


async def test_a_server_that_nobody_vouches_for_is_sent_nothing(tmp_path: Path) -> None:
    """Not even the head of a request, which may hold a key."""
    heard: list[bytes] = []
    async with server(certificate(tmp_path, "localhost"), heard) as url:
        with pytest.raises(ProviderError, match="localhost cannot be reached") as caught:
            await body_of(url)

    assert (caught.value.kind, heard) == ("connection", [])


async def test_who_the_user_names_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By SSL_CERT_FILE, also where the process has read another list before."""
    trusted.tls()
    file = certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    async with server(file, []) as url:
        assert await body_of(url) == b"ok"


async def test_a_certificate_for_another_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever vouches for it."""
    file = certificate(tmp_path, "example.invalid")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    heard: list[bytes] = []
    async with server(file, heard) as url:
        with pytest.raises(ProviderError, match="localhost cannot be reached"):
            await body_of(url)

    assert heard == []


async def test_servers_of_mcp_are_checked_alike(tmp_path: Path) -> None:
    """Their headers may hold a key too."""
    heard: list[bytes] = []
    async with server(certificate(tmp_path, "localhost"), heard) as url:
        named = Server(
            name="tools", entry=McpEntry(type="remote", url=url, headers={"authorization": "secret"})
        )
        async with remote.client(named, remote.Traffic(named)) as client:
            with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await client.get(url)

    assert heard == []


def test_a_process_reads_the_list_once() -> None:
    """Every client checks by the same one."""
    assert trusted.tls() is trusted.tls()
