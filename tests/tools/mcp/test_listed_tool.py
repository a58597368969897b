"""What of a server's list is offered to the model."""

from typing import Any

import pytest

from holdfast.schema.program_entry import McpEntry
from holdfast.tools.mcp.listed_tool import ListedTool, Offer, OfferedTool, offer
from holdfast.tools.mcp.server import Server

NOTHING: Any = {"type": "object", "properties": {}, "required": []}


def server(**fields: Any) -> Server:
    return Server(name="s", entry=McpEntry(type="local", command=["x"], **fields))


def tool(name: str = "t", **fields: Any) -> ListedTool:
    return ListedTool(name=name, **fields)


def test_a_tool_is_offered_with_its_server_s_name_and_what_its_annotations_say() -> None:
    """Only what is declared as reading or idempotent may be repeated; `type` and `required` are filled in."""
    listed = [
        tool("a", description="Read.", read_only=True),
        tool("b", description="Set.", idempotent=True, schema={"properties": {"x": {"type": "integer"}}}),
        tool("c", description="Do."),
    ]
    wanted = {**NOTHING, "properties": {"x": {"type": "integer"}}}

    assert offer(server(), listed) == Offer(
        (
            _offered("a", "(MCP server s) Read.", NOTHING, read_only=True, repeatable=True),
            _offered("b", "(MCP server s) Set.", wanted, repeatable=True),
            _offered("c", "(MCP server s) Do.", NOTHING),
        )
    )


def _offered(name: str, description: str, schema: Any, **more: Any) -> OfferedTool:
    facts = {"read_only": False, "repeatable": False, **more}
    return OfferedTool(name=f"s_{name}", tool=name, description=description, schema=schema, **facts)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, ["read", "read_all", "write"]),
        ({"allow": ["read*"]}, ["read", "read_all"]),
        ({"deny": ["*all"]}, ["read", "write"]),
        ({"allow": ["read*"], "deny": ["read_all"]}, ["read"]),
        ({"allow": []}, []),
    ],
)
def test_the_settings_choose_among_the_tools(fields: dict[str, Any], names: list[str]) -> None:
    """`allow` names those that are offered, and `deny` wins over it."""
    found = offer(server(**fields), [tool("read"), tool("read_all"), tool("write")])

    assert [each.tool for each in found.tools] == names


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "object", "$schema": []},
        {"type": "objekt"},
        {"type": "object", "properties": []},
        {"type": "object", "required": "x"},
        {"type": "object", "properties": {"x": {"$ref": "https://example.invalid/schema"}}},
        {"type": "object", "properties": {"x": {"enum": ["y" * 40_000]}}},
        {"type": "object", "properties": {"x": {"type": "object", "properties": {"y": {"type": 7}}}}},
    ],
)
def test_a_tool_whose_schema_no_provider_takes_is_left_out(schema: Any) -> None:
    """One such definition would fail every request; the others of the server stay."""
    found = offer(server(), [tool("bad", schema=schema), tool("good")])

    assert [each.tool for each in found.tools] == ["good"]
    assert found.problems == ("arguments without a usable schema: bad",)


def test_a_tool_that_can_only_be_called_as_a_task_is_left_out() -> None:
    """A call of it would always fail."""
    found = offer(server(), [tool("a", needs_task=True), tool("b")])

    assert [each.tool for each in found.tools] == ["b"]
    assert found.problems == ("only to be called as tasks, which are not offered: a",)


@pytest.mark.parametrize("draft", ["draft-03", "draft-04"])
def test_a_schema_of_an_old_draft_is_offered_as_it_is(draft: str) -> None:
    """An empty `required` is no schema there, so none is filled in."""
    old = {"$schema": f"http://json-schema.org/{draft}/schema#", "type": "object", "properties": {"x": {}}}
    (found,) = offer(server(), [tool(schema=old)]).tools

    assert found.schema == old


def test_a_deep_schema_is_left_out() -> None:
    """It would exhaust the stack of whoever reads it."""
    deep: Any = {"type": "object"}
    for _ in range(500):
        deep = {"type": "object", "properties": {"x": deep}}

    assert offer(server(), [tool("deep", schema=deep)]).tools == ()


def test_choices_at_the_root_are_left_away() -> None:
    """Providers refuse them there; what the properties are is still said."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "anyOf": [{"required": ["x"]}]}
    (found,) = offer(server(), [tool(schema=schema)]).tools

    assert found.schema == {**NOTHING, "properties": {"x": {"type": "string"}}}


def test_descriptions_are_bounded_and_plain() -> None:
    """Ten megabytes, and signs that a terminal obeys, cost the model nothing."""
    long, odd = offer(
        server(),
        [tool("a", description="x" * 10_000_000), tool("b", description="Say\x1b[31m\n\n\n\u202ehi")],
    ).tools

    assert (len(long.description), long.description[-8:]) == (2_021, "xx [cut]")
    assert odd.description == "(MCP server s) Say [31m\n\n hi"


def test_of_very_many_tools_the_first_are_offered() -> None:
    """And the user reads how to choose."""
    found = offer(server(), [tool(f"t{number:04}") for number in range(10_000)])

    assert [each.tool for each in found.tools] == [f"t{number:04}" for number in range(128)]
    assert found.problems == ("it has 10000 tools, and the first 128 are offered; choose with `allow`",)


def test_all_definitions_of_a_server_together_are_bounded() -> None:
    """Many large ones would leave no room for the work: the first are offered, and the user reads it."""
    large = {"type": "object", "properties": {"x": {"enum": ["y" * 20_000]}}}
    found = offer(server(), [tool(f"t{number}", schema=large) for number in range(20)])

    assert [each.tool for each in found.tools] == [f"t{number}" for number in range(6)]
    assert found.problems == (
        "its definitions have more than 128 KiB, so 14 tools are left out; choose with `allow`",
    )


def test_words_in_a_schema_are_plain_and_bounded() -> None:
    """Those that describe; values are not touched."""
    schema = {
        "type": "object",
        "title": "T\x1b[2J",
        "properties": {"description": {"type": "string", "description": "z" * 5_000, "enum": ["\x1b"]}},
    }
    (found,) = offer(server(), [tool(schema=schema)]).tools
    inner = found.schema["properties"]["description"]

    assert found.schema["title"] == "T [2J"
    assert inner == {"type": "string", "description": "z" * 1_000 + " [cut]", "enum": ["\x1b"]}


def test_no_tool_takes_the_name_of_another() -> None:
    """A server called `apply` with a tool `patch` does not become `apply_patch`."""
    given = Server(name="apply", entry=McpEntry(type="local", command=["x"]))
    (found,) = offer(given, [tool("patch")], {"apply_patch"}).tools

    assert found.name.startswith("apply_patch_")


def test_no_tool_is_named_as_those_of_another_server() -> None:
    """A rule for `git_hub_*` is for one server, whichever is connected first."""
    git = Server(name="git", entry=McpEntry(type="local", command=["x"]))
    made = offer(git, [tool("hub_drop"), tool("log")], others={"git_hub", "other"})
    twin = offer(git, [tool("log")], others={"git"})
    odd = offer(git, [tool("hub_drop")], others={"git.hub"})

    assert [each.name for each in made.tools] == ["git_log"]
    assert made.problems == ("named as tools of another server, and left out: hub_drop",)
    assert (len(odd.tools), [each.name[:8] for each in twin.tools]) == (0, ["git_log_"])
