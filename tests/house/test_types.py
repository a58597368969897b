"""Only `schema/typed.py` lets msgspec build the description of a type.

Elsewhere two threads could do it at once, and end the process.
"""

import ast
from pathlib import Path

import pytest

from tests.house.parsing import parsed

SRC = Path(__file__).parents[2] / "src" / "holdfast"

# Types without a description that threads could share.
PLAIN = {
    *("dict", "list", "tuple", "str", "int", "float", "bool", "object"),
    *("Any", "Raw", "msgspec", "JsonMap", "_Json"),
}
DECODERS = {
    "msgspec.convert": 1,
    "msgspec.json.decode": 1,
    "msgspec.json.Decoder": 0,
    "msgspec.msgpack.Decoder": 0,
}


def decoded_types(tree: ast.Module) -> list[ast.expr]:
    """Every type that a file gives to msgspec."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (place := DECODERS.get(ast.unparse(node.func))) is not None:
            named = [each.value for each in node.keywords if each.arg == "type"]
            found += named or node.args[place : place + 1]
    return found


def names(type_: ast.expr) -> set[str]:
    nodes = list(ast.walk(type_))
    return {each.id for each in nodes if isinstance(each, ast.Name)} | {
        each.attr for each in nodes if isinstance(each, ast.Attribute)
    }


@pytest.mark.ci
def test_types_of_ours_are_described_in_one_place() -> None:
    """No file but `schema/typed.py` decodes into a Struct, a dataclass or anything else that is not plain."""
    found = [
        f"{path.relative_to(SRC)}:{type_.lineno}: {ast.unparse(type_)}"
        for path in sorted(SRC.rglob("*.py"))
        if path != SRC / "schema" / "typed.py"
        for type_ in decoded_types(parsed(path))
        if not names(type_) <= PLAIN
    ]

    assert found == []
