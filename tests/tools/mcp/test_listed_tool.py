"""What of a server's list is offered to the model."""

from typing import Any

import anyio
import pytest

from holdfast.schema.program_entry import McpEntry
from holdfast.tools.mcp import listed_tool
from holdfast.tools.mcp.listed_tool import ListedTool, Offer, OfferedTool, offer
from holdfast.tools.mcp.server import Server

NOTHING: Any = {"type": "object", "properties": {}, "required": []}


def server(**fields: Any) -> Server:
    return Server(name="s", entry=McpEntry(type="local", command=["x"], **fields))


def tool(name: str = "t", **fields: Any) -> ListedTool:
    return ListedTool(name=name, **fields)


async def test_a_tool_is_offered_with_its_server_s_name_and_what_its_annotations_say() -> None:
    """Only what is declared as reading or idempotent may be repeated; `type` and `required` are filled in."""
    listed = [
        tool("a", description="Read.", read_only=True),
        tool("b", description="Set.", idempotent=True, schema={"properties": {"x": {"type": "integer"}}}),
        tool("c", description="Do."),
    ]
    wanted = {**NOTHING, "properties": {"x": {"type": "integer"}}}

    assert await offer(server(), listed) == Offer(
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
async def test_the_settings_choose_among_the_tools(fields: dict[str, Any], names: list[str]) -> None:
    """`allow` names those that are offered, and `deny` wins over it."""
    found = await offer(server(**fields), [tool("read"), tool("read_all"), tool("write")])

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
async def test_a_tool_whose_schema_no_provider_takes_is_left_out(schema: Any) -> None:
    """One such definition would fail every request; the others of the server stay."""
    found = await offer(server(), [tool("bad", schema=schema), tool("good")])

    assert [each.tool for each in found.tools] == ["good"]
    assert found.problems == ("arguments without a usable schema: bad",)


async def test_a_tool_that_can_only_be_called_as_a_task_is_left_out() -> None:
    """A call of it would always fail."""
    found = await offer(server(), [tool("a", needs_task=True), tool("b")])

    assert [each.tool for each in found.tools] == ["b"]
    assert found.problems == ("only to be called as tasks, which are not offered: a",)


@pytest.mark.parametrize("draft", ["draft-03", "draft-04"])
async def test_a_schema_of_an_old_draft_is_offered_as_it_is(draft: str) -> None:
    """An empty `required` is no schema there, so none is filled in."""
    old = {"$schema": f"http://json-schema.org/{draft}/schema#", "type": "object", "properties": {"x": {}}}
    (found,) = (await offer(server(), [tool(schema=old)])).tools

    assert found.schema == old


async def test_a_deep_schema_is_left_out() -> None:
    """It would exhaust the stack of whoever reads it."""
    deep: Any = {"type": "object"}
    for _ in range(500):
        deep = {"type": "object", "properties": {"x": deep}}

    assert (await offer(server(), [tool("deep", schema=deep)])).tools == ()


async def test_choices_at_the_root_are_left_away() -> None:
    """Providers refuse them there; what the properties are is still said."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "anyOf": [{"required": ["x"]}]}
    (found,) = (await offer(server(), [tool(schema=schema)])).tools

    assert found.schema == {**NOTHING, "properties": {"x": {"type": "string"}}}


async def test_descriptions_are_bounded_and_plain() -> None:
    """Ten megabytes, and signs that a terminal obeys, cost the model nothing."""
    listed = [
        tool("a", description="x" * 10_000_000),
        tool("b", description="Say\x1b[31m\n\n\n\u202ehi"),
    ]
    long, odd = (await offer(server(), listed)).tools

    assert (len(long.description), long.description[-8:]) == (2_021, "xx [cut]")
    assert odd.description == "(MCP server s) Say [31m\n\n hi"


async def test_of_very_many_tools_the_first_are_offered() -> None:
    """And the user reads how to choose."""
    found = await offer(server(), [tool(f"t{number:04}") for number in range(10_000)])

    assert [each.tool for each in found.tools] == [f"t{number:04}" for number in range(128)]
    assert found.problems == ("it has 10000 tools, and the first 128 are offered; choose with `allow`",)


async def test_all_definitions_of_a_server_together_are_bounded() -> None:
    """Many large ones would leave no room for the work: the first are offered, and the user reads it."""
    large = {"type": "object", "properties": {"x": {"enum": ["y" * 20_000]}}}
    found = await offer(server(), [tool(f"t{number}", schema=large) for number in range(20)])

    assert [each.tool for each in found.tools] == [f"t{number}" for number in range(6)]
    assert found.problems == (
        "its definitions have more than 128 KiB, so 14 tools are left out; choose with `allow`",
    )


async def test_words_in_a_schema_are_plain_and_bounded() -> None:
    """Those that describe; values are not touched."""
    schema = {
        "type": "object",
        "title": "T\x1b[2J",
        "properties": {"description": {"type": "string", "description": "z" * 5_000, "enum": ["\x1b"]}},
    }
    (found,) = (await offer(server(), [tool(schema=schema)])).tools
    inner = found.schema["properties"]["description"]

    assert found.schema["title"] == "T [2J"
    assert inner == {"type": "string", "description": "z" * 1_000 + " [cut]", "enum": ["\x1b"]}


async def test_no_tool_takes_the_name_of_another() -> None:
    """A server called `apply` with a tool `patch` does not become `apply_patch`."""
    given = Server(name="apply", entry=McpEntry(type="local", command=["x"]))
    (found,) = (await offer(given, [tool("patch")], {"apply_patch"})).tools

    assert found.name.startswith("apply_patch_")


async def test_no_tool_is_named_as_those_of_another_server() -> None:
    """A rule for `git_hub_*` is for one server, whichever is connected first."""
    git = Server(name="git", entry=McpEntry(type="local", command=["x"]))
    made = await offer(git, [tool("hub_drop"), tool("log")], others={"git_hub", "other"})
    twin = await offer(git, [tool("log")], others={"git"})
    odd = await offer(git, [tool("hub_drop")], others={"git.hub"})

    assert [each.name for each in made.tools] == ["git_log"]
    assert made.problems == ("named as tools of another server, and left out: hub_drop",)
    assert (len(odd.tools), [each.name[:8] for each in twin.tools]) == (0, ["git_log_"])


DRAFT_04 = "http://json-schema.org/draft-04/schema#"
MIXED: Any = [{}, *range(5_200)]


@pytest.mark.ci
async def test_schemas_that_take_too_long_to_judge_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a server have one bound of processor time, nothing else waits, and its other tools stay."""
    monkeypatch.setattr(listed_tool, "CPU_S", 1)
    slow = {"$schema": DRAFT_04, "type": "object", "properties": {"x": {"enum": MIXED}}}
    listed = [tool("b"), *(tool(f"bad{number}", schema=slow) for number in range(3)), tool("a")]
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            await anyio.sleep(0.001)
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        found = await offer(server(), listed)
        group.cancel_scope.cancel()
    assert [each.tool for each in found.tools] == ["a", "b"]
    (problem,) = found.problems
    assert problem == (
        "arguments whose schemas cannot be judged (the check takes more than 1 s, or too much memory): "
        "bad0, bad1, bad2"
    )
    assert turns > 10


async def test_a_schema_that_may_take_long_is_offered_if_it_does_not() -> None:
    """It is judged by a process, as every other is by a thread."""
    few = {"$schema": DRAFT_04, "type": "object", "properties": {"x": {"enum": MIXED[:100]}}}
    wrong = {**few, "required": []}
    found = await offer(server(), [tool("wrong", schema=wrong), tool("few", schema=few), tool("plain")])

    assert [each.tool for each in found.tools] == ["few", "plain"]
    assert found.problems == ("arguments without a usable schema: wrong",)
