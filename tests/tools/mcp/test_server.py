"""Servers as the settings name them."""

from holdfast.schema.config import Config, ExperimentalConfig
from holdfast.schema.program_entry import McpEntry
from holdfast.tools.mcp.server import CALL_S, CONNECT_S, configured

PROGRAM = ["run"]


def bounds(config: Config) -> dict[str, tuple[float, float]]:
    return {name: (each.connect_s, each.call_s) for name, each in configured(config).items()}


def test_each_server_has_its_own_bounds() -> None:
    """Of its entry, else of all servers, else ours; an entry that only switches one off is no server."""
    own = McpEntry(type="local", command=PROGRAM, timeout=700, call_timeout=9_000)
    mcp = {"own": own, "plain": McpEntry(type="local", command=PROGRAM), "off": McpEntry(enabled=False)}
    general = ExperimentalConfig(mcp_timeout=2_000)

    assert bounds(Config(mcp=mcp)) == {"own": (0.7, 9.0), "plain": (CONNECT_S, CALL_S)}
    assert bounds(Config(mcp=mcp, experimental=general)) == {"own": (0.7, 9.0), "plain": (CONNECT_S, 2.0)}
