"""What a server says of one of its tools, within bounds, and what is offered of it to the model.

What must stay true: a definition from here is one that providers take; what cannot be made so is left out,
and named. A description is bounded and begins with the server that it comes from.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import anyio.to_thread
import msgspec

from holdfast.schema.wire import JsonMap
from holdfast.text import printable
from holdfast.tools import schema_check, schema_rules
from holdfast.tools.mcp import names
from holdfast.tools.mcp.server import Server
from holdfast.tools.schema_check import Unjudged

TOOLS_MAX: Final = 128
"""Of one server; more would fill the request and confuse the model."""
DESCRIPTION_CHARS_MAX: Final = 2_000
SCHEMA_BYTES_MAX: Final = 32 * 1024
ALL_BYTES_MAX: Final = 128 * 1024
"""What all definitions of one server may have."""
WORDS_CHARS_MAX: Final = 1_000
"""Of each text that describes a part of a schema."""
DEPTH_MAX: Final = 32
CPU_S: Final = 5
"""How much processor time all schemas of one server may take."""
_NAMED_MAX: Final = 10
_UNUSABLE: Final = "arguments without a usable schema"
_COMBINED: Final = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else")
"""Providers refuse these at the root of a tool's arguments."""
_NONE_REQUIRED: Final = re.compile(r"/draft-0[34]/")
"""The drafts in which `required` is no list, or not an empty one."""


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a server's list."""

    name: str
    description: str = ""
    schema: JsonMap = {}
    read_only: bool = False
    idempotent: bool = False
    needs_task: bool = False
    """It can be called only as a task of the protocol, which is not offered here."""


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model is shown it. `tool` is what its server calls it."""

    name: str
    tool: str
    description: str
    schema: JsonMap
    read_only: bool
    repeatable: bool


class Offer(msgspec.Struct, frozen=True):
    """The tools of one server, and a line for each thing that was left out."""

    tools: tuple[OfferedTool, ...] = ()
    problems: tuple[str, ...] = ()


class _Chosen(msgspec.Struct, frozen=True):
    """The tools that may be offered, by their names, with schemas that are not judged yet."""

    listed: dict[str, ListedTool]
    quick: dict[str, JsonMap]
    """Schemas that take work in proportion to their size."""
    slow: dict[str, JsonMap]
    problems: list[str]


async def offer(
    server: Server, listed: Sequence[ListedTool], taken: Collection[str] = (), others: Collection[str] = ()
) -> Offer:
    """What a server offers beside `others`."""
    chosen = await anyio.to_thread.run_sync(_chosen, server, listed, others)
    # What may be much work is judged apart: it fails without the others.
    sound = await _sound(chosen.quick, chosen.problems) | await _sound(chosen.slow, chosen.problems)
    schemas = {name: sound[name] for name in chosen.listed if name in sound}
    called = names.named(server.name, schemas, taken, others)
    tools = [
        OfferedTool(
            name=called[name],
            tool=name,
            description=_description(server, chosen.listed[name].description),
            schema=schema,
            read_only=chosen.listed[name].read_only,
            repeatable=chosen.listed[name].read_only or chosen.listed[name].idempotent,
        )
        for name, schema in schemas.items()
    ]
    return Offer(tuple(sorted(tools, key=lambda each: each.name)), tuple(chosen.problems))


def _chosen(server: Server, listed: Sequence[ListedTool], others: Collection[str]) -> _Chosen:
    """Those within the bounds. A server decides how long its list is, so this is for a thread."""
    problems: list[str] = []
    wanted = {each.name: each for each in listed if each.name.strip() and server.offers(each.name)}
    if foreign := [name for name in wanted if names.is_of_another(server.name, name, others)]:
        problems.append(f"named as tools of another server, and left out: {_some(foreign)}")
        for name in foreign:
            del wanted[name]
    if tasks := [name for name, each in wanted.items() if each.needs_task]:
        problems.append(f"only to be called as tasks, which are not offered: {_some(tasks)}")
        wanted = {name: each for name, each in wanted.items() if not each.needs_task}
    if len(wanted) > TOOLS_MAX:
        problems.append(
            f"it has {len(wanted)} tools, and the first {TOOLS_MAX} are offered; choose with `allow`"
        )
        wanted = dict(list(wanted.items())[:TOOLS_MAX])
    schemas = {name: schema for name, each in wanted.items() if (schema := _schema(each.schema)) is not None}
    if unusable := [name for name in wanted if name not in schemas]:
        problems.append(f"{_UNUSABLE}: {_some(unusable)}")
    schemas = _fitting(schemas, wanted, problems)
    quick = {name: schema for name, schema in schemas.items() if schema_rules.is_quick(schema)}
    slow = {name: schema for name, schema in schemas.items() if name not in quick}
    return _Chosen(wanted, quick, slow, problems)


async def _sound(schemas: Mapping[str, JsonMap], problems: list[str]) -> dict[str, JsonMap]:
    """Those that are schemas."""
    try:
        found = await schema_check.schemas_problems(list(schemas.values()), cpu_s=CPU_S)
    except Unjudged as error:
        problems.append(f"arguments whose schemas cannot be judged ({error}): {_some(list(schemas))}")
        return {}
    wrong = [name for name, problem in zip(schemas, found, strict=True) if problem]
    if wrong:
        problems.append(f"{_UNUSABLE}: {_some(wrong)}")
    return {name: schema for name, schema in schemas.items() if name not in wrong}


def _fitting(
    sound: dict[str, JsonMap], wanted: Mapping[str, ListedTool], problems: list[str]
) -> dict[str, JsonMap]:
    """The first of them that have room together."""
    room = ALL_BYTES_MAX
    kept: dict[str, JsonMap] = {}
    for name, schema in sound.items():
        room -= len(msgspec.json.encode(schema)) + min(len(wanted[name].description), DESCRIPTION_CHARS_MAX)
        if room < 0:
            left = len(sound) - len(kept)
            problems.append(
                f"its definitions have more than {ALL_BYTES_MAX >> 10} KiB, so {left} tools are left out; "
                "choose with `allow`"
            )
            break
        kept[name] = schema
    return kept


def _some(tools: Sequence[str]) -> str:
    """The first of them; a server decides how many there are."""
    more = "" if len(tools) <= _NAMED_MAX else f" and {len(tools) - _NAMED_MAX} more"
    return ", ".join(printable(name[:60]) for name in tools[:_NAMED_MAX]) + more


def _description(server: Server, text: str) -> str:
    return f"(MCP server {printable(server.name[:60])}) {_words(text, DESCRIPTION_CHARS_MAX)}".rstrip()


def _words(text: str, chars_max: int) -> str:
    """A text without anything that a terminal would obey but line breaks, within a bound."""
    lines = (printable(line) for line in text[: 2 * chars_max].splitlines())
    plain = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    is_cut = len(plain) > chars_max or len(text) > 2 * chars_max
    return f"{plain[:chars_max].rstrip()} [cut]" if is_cut else plain


def _schema(given: JsonMap) -> JsonMap | None:
    """The schema of a tool's arguments as providers take it, if it is one; None where there is none."""
    if given.get("type", "object") != "object" or not _is_plain_json(given):
        return None
    schema = {key: item for key, item in _described(given).items() if key not in _COMBINED}
    schema = {"type": "object", "properties": {}, **schema}
    if not _NONE_REQUIRED.search(str(schema.get("$schema"))):
        schema.setdefault("required", [])
    return schema if len(msgspec.json.encode(schema)) <= SCHEMA_BYTES_MAX else None


def _described(value: Any) -> Any:
    """A schema with plain words where it describes."""
    if isinstance(value, dict):
        return {
            key: _words(item, WORDS_CHARS_MAX)
            if key in ("description", "title") and isinstance(item, str)
            else _described(item)
            for key, item in value.items()
        }
    return [_described(item) for item in value] if isinstance(value, list) else value


def _is_plain_json(value: Any, depth: int = 0) -> bool:
    """Whether it is not nested too deeply, and refers to nothing outside itself."""
    if depth > DEPTH_MAX:
        return False
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            return False
        return all(_is_plain_json(item, depth + 1) for item in value.values())
    return not isinstance(value, list) or all(_is_plain_json(item, depth + 1) for item in value)
