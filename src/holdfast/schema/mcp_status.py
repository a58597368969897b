"""How the connection to an MCP server is."""

from typing import Literal

import msgspec

McpState = Literal["connecting", "connected", "disabled", "failed", "needs_auth", "needs_client_registration"]


class McpStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of one server; `error` says why it is not connected."""

    status: McpState
    error: str | None = None
