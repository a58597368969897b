"""The protocol's own example server, from npm: a program that nobody here wrote."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.schema.program_entry import McpEntry
from holdfast.toolkit.output import ToolOutput
from holdfast.tools.mcp.server import Server
from tests.conftest import environment
from tests.tools.fake_context import FakeContext
from tests.tools.mcp.servers import servers

PACKAGE = "@modelcontextprotocol/server-everything"


@pytest.mark.long
@pytest.mark.needs("npx")
async def test_the_example_server_is_understood(tmp_path: Path) -> None:
    """Its tools, progress, pictures, structured values, resources and the project's folder."""
    entry = McpEntry(type="local", command=["npx", "-y", PACKAGE, "stdio"], environment=environment)
    context = FakeContext(tmp_path)
    async with servers(tmp_path) as made:
        await made.connect({"all": Server(name="all", entry=entry, connect_s=120)})
        assert made.states == {"all": ("connected", None)}

        async def text(name: str, **arguments: Any) -> ToolOutput:
            given = await made.call(name, context, **arguments)
            assert isinstance(given, ToolOutput)
            return given

        assert (await text("all_echo", message="hi")).text == "Echo: hi"
        assert (await text("all_get-sum", a=1, b=2)).text == "The sum of 1 and 2 is 3."
        assert [file.mime for file in (await text("all_get-tiny-image")).attachments] == ["image/png"]
        weather = await text("all_get-structured-content", location="New York")
        assert set(weather.structured or {}) == {"temperature", "conditions", "humidity"}
        assert tmp_path.as_uri() in (await text("all_get-roots-list")).text
        await text("all_trigger-long-running-operation", duration=1, steps=4)
        assert context.shown[-1][1]["progress"]["total"] == 4.0
        assert "demo://resource" in (await text("list_mcp_resources")).text
        assert any("only to be called as tasks" in line for line in made.warnings)
