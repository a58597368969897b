"""`holdfast providers login https://HOST`: signs in to a host that has settings for this user.

The host says under which name its settings use a token, and may name a program of this machine that makes
one. That program runs only when the user, in a terminal, has seen it and agreed.
"""

import re
import subprocess
import sys

import anyio
import click
import msgspec

from holdfast.cli.output import clean, note, print_json
from holdfast.cli.providers.login import read_key
from holdfast.config.untrusted import well_known
from holdfast.errors import ContextError, InvalidInput, ProviderError
from holdfast.net.stream import Http
from holdfast.provider.accounts import credentials
from holdfast.provider.accounts.secret import Secret
from holdfast.schema import typed
from holdfast.workspace import host_settings

ANSWER_BYTES_MAX = 1024 * 1024
PROGRAM_S = 300
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class SignIn(msgspec.Struct, frozen=True):
    """How a host wants users to sign in."""

    env: str
    command: list[str] = []


class HostAnswer(msgspec.Struct, frozen=True):
    """The part of a host's answer that matters here."""

    auth: SignIn


def login_host(address: str, *, key_stdin: bool, form: str) -> None:
    """Fetch what the host asks for, get a token, keep it."""
    host = host_of(address)
    body = anyio.run(_fetch, host)
    asked = sign_in(host, body)
    token = _token(host, asked, from_stdin=key_stdin)
    credentials.save_token(f"https://{host}", asked.env, token)
    host_settings.keep(host, body.decode())
    if form == "json":
        print_json({"host": host, "file": str(credentials.our_file())})
        return
    note(
        f"Signed in to {host}; providers at its address use the token. `holdfast config` shows its settings."
    )


def host_of(address: str) -> str:
    """The host of an address that names nothing else."""
    host = address.lower().removeprefix("https://").removesuffix("/")
    if not address.lower().startswith("https://"):
        raise InvalidInput(f"{address[:100]!r} is no address of a host; write it as https://HOST")
    well_known.url_of(host)  # Refuses what is no name of a host.
    return host


def sign_in(host: str, body: bytes) -> SignIn:
    """What the host asks for."""
    try:
        asked = typed.decode(body, HostAnswer).auth
        body.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ContextError(f"{host} does not say how to sign in ({well_known.url_of(host)})") from None
    if not VARIABLE.fullmatch(asked.env):
        raise ContextError(f"{host} names {asked.env[:40]!r} for its token, which is no name of a variable")
    return asked


async def _fetch(host: str) -> bytes:
    url = well_known.url_of(host)
    http = Http()
    try:
        answer = await http.get(url, bytes_max=ANSWER_BYTES_MAX, timeout_ms=int(well_known.WAIT_S * 1000))
    except ProviderError as error:
        raise ContextError(f"{url} cannot be fetched: {error}") from error
    finally:
        await http.aclose()
    if answer.status != 200:
        raise ContextError(f"{url} answers {answer.status}; is {host} a provider's host?")
    return answer.body


def _token(host: str, asked: SignIn, *, from_stdin: bool) -> Secret:
    if not from_stdin and asked.command and sys.stdin.isatty():
        shown = clean(" ".join(asked.command))
        if click.confirm(f"{host} asks to run this program for a token: {shown}\nRun it?", err=True):
            return run(asked.command)
    return read_key(f"Token of {host}", from_stdin=from_stdin)


def run(command: list[str]) -> Secret:
    """The token that a program prints. What else it prints stays on the terminal."""
    try:
        made = subprocess.run(command, stdout=subprocess.PIPE, timeout=PROGRAM_S, check=False)
    except (OSError, ValueError) as error:
        raise ContextError(f"{command[0][:100]} cannot be run: {error}") from error
    except subprocess.TimeoutExpired:
        raise ContextError(f"{command[0][:100]} did not end within {PROGRAM_S} s") from None
    if made.returncode:
        raise ContextError(f"{command[0][:100]} ended with {made.returncode} and no token")
    return Secret(made.stdout.decode("utf-8", "replace"))
