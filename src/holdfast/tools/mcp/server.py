"""One MCP server, as the settings name it."""

import hashlib
from typing import Final

import msgspec

from holdfast.permission import wildcard
from holdfast.schema.config import Config
from holdfast.schema.program_entry import McpEntry, McpOAuth
from holdfast.secret_text import HIDDEN, without_secrets

CONNECT_S: Final = 5.0
CALL_S: Final = 120.0
CALL_S_MAX: Final = 3_600.0
"""How long a call may take, however often its server reports progress."""
_SECRET_CHARS_MIN: Final = 6
"""A shorter value would be found in every text."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server with its bounds."""

    name: str
    entry: McpEntry
    connect_s: float = CONNECT_S
    call_s: float = CALL_S

    def __repr__(self) -> str:  # Entries hold keys and passwords.
        return f"Server({self.name!r})"

    @property
    def enabled(self) -> bool:
        """Whether it is to be connected."""
        return self.entry.enabled is not False

    @property
    def identity(self) -> str:
        """A digest of what is connected to: another command or address is another server."""
        facts = [self.name, self.entry.url or "", *(self.entry.command or ())]
        return hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()[:32]

    def hidden(self, text: str) -> str:
        """A text of the server's without what its entry holds: programs repeat a key that they refuse."""
        for value in self._secrets():
            text = text.replace(value, HIDDEN)
        return without_secrets(text)

    def _secrets(self) -> list[str]:
        """The values that may be secrets, longest first: one may be a part of another."""
        entry = self.entry
        given = [*(entry.environment or {}).values(), *(entry.headers or {}).values()]
        given += [word for value in (entry.headers or {}).values() for word in value.split()]
        if isinstance(entry.oauth, McpOAuth):
            given.append(entry.oauth.client_secret or "")
        return sorted((each for each in given if len(each) >= _SECRET_CHARS_MIN), key=len, reverse=True)

    def offers(self, tool: str) -> bool:
        """Whether the settings let one of its tools be offered."""
        allow, deny = self.entry.allow, self.entry.deny or ()
        if any(wildcard.match(tool, pattern) for pattern in deny):
            return False
        return allow is None or any(wildcard.match(tool, pattern) for pattern in allow)


def configured(config: Config) -> dict[str, Server]:
    """The servers of the settings by name. An entry that only switches one that is not there is none."""
    general = None if config.experimental is None else config.experimental.mcp_timeout
    call_s = CALL_S if general is None else general / 1_000
    found = {}
    for name, entry in sorted((config.mcp or {}).items()):
        if entry.type is not None:
            found[name] = Server(
                name=name,
                entry=entry,
                connect_s=CONNECT_S if entry.timeout is None else entry.timeout / 1_000,
                call_s=call_s if entry.call_timeout is None else entry.call_timeout / 1_000,
            )
    return found
