"""The user's accounts with remote servers: tokens and the clients that were registered for them.

One private file, by the server's name. What must stay true: it is readable by the user alone; a token goes to
the address that it was made for, and to no other; no token is in any message.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import msgspec

from holdfast.errors import ContextError
from holdfast.person import directories, small_file
from holdfast.schema import typed
from holdfast.schema.wire import JsonMap
from holdfast.tools.mcp.server import Server

EARLY_MS: Final = 30_000
"""A token that ends so soon is renewed before it is used."""


class Account(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What lets the user in at one address. `expires_ms` is None for a token that does not say."""

    url: str
    access: str
    refresh: str | None = None
    expires_ms: int | None = None
    scope: str | None = None
    token_url: str
    resource: str | None = None
    client_id: str
    client_secret: str | None = None
    client_auth: str | None = None
    """How it proves itself where tokens are made: `client_secret_post`, `client_secret_basic` or none."""

    def __repr__(self) -> str:
        return f"Account({self.url!r})"

    def is_over(self, now_ms: int) -> bool:
        """Whether its token has ended, or is about to."""
        return self.expires_ms is not None and self.expires_ms - EARLY_MS <= now_ms


def our_file() -> Path:
    """Where they are."""
    return directories.data() / "mcp-accounts.json"


def find(server: Server) -> Account | None:
    """The account for a server; None if there is none for its address."""
    entry = _entries(small_file.read(our_file())).get(server.name)
    try:
        account = None if entry is None else typed.convert(entry, Account)
    except msgspec.ValidationError:
        return None  # A newer program may have written it.
    return account if account is not None and account.url == server.entry.url else None


def save(server: str, account: Account) -> None:
    """Keep an account in the place of the one before it."""
    made = msgspec.to_builtins(account)
    _edit(lambda entries: {**entries, server: made})


def renew(server: str, used: Account, renewed: Account) -> None:
    """Keep a renewed account, unless the user has signed out meanwhile, or signed in anew."""

    def change(entries: JsonMap) -> JsonMap:
        kept = entries.get(server)
        is_same = isinstance(kept, dict) and (kept.get("url"), kept.get("access")) == (used.url, used.access)
        return {**entries, server: msgspec.to_builtins(renewed)} if is_same else entries

    _edit(change)


def renewing() -> AbstractContextManager[None]:
    """Held while a token is renewed: a second renewal with the same one may end both, at a careful server.

    It blocks for as long as `small_file` waits; `ContextError` then.
    """
    return small_file.lock(our_file().with_name("mcp-renewal"))


def forget(server: str) -> bool:
    """Remove an account; whether there was one."""
    if server not in _entries(small_file.read(our_file())):
        return False
    _edit(lambda entries: {name: entry for name, entry in entries.items() if name != server})
    return True


def _entries(data: bytes | None) -> JsonMap:
    if data is None or not data.strip():
        return {}
    try:
        return msgspec.json.decode(data, type=JsonMap)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Neither the data nor the decoder's words about it are shown: they may hold a token.
        raise ContextError(f"{our_file()} is no JSON object; mend it or move it away") from None


def _edit(change: Callable[[JsonMap], JsonMap]) -> None:
    def editor(data: bytes | None) -> bytes:
        return msgspec.json.format(msgspec.json.encode(change(_entries(data))), indent=2) + b"\n"

    small_file.edit(our_file(), editor)
