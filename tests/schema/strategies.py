"""Hypothesis strategies for the schema, made from the types themselves so that none is forgotten.

`values` draws values of a type; `with_unknown` draws its JSON with unknown fields strewn into it.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from holdfast.schema import extra, stored
from holdfast.schema.event import Event
from holdfast.schema.fault import Fault
from holdfast.schema.prompt import PartInput
from holdfast.schema.status import SessionStatus
from holdfast.schema.usage import Tokens
from holdfast.schema.wire import encode

TYPES: dict[str, Any] = {
    **{kind: stored.type_of(kind) for kind in stored.KINDS},
    "event": Event,
    "fault": Fault,
    "part input": PartInput,
    "status": SessionStatus,
    "tokens": Tokens,
}

WHOLE = st.integers(0, 2**53 - 1)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
# Names that nobody knows, names that mean something elsewhere, and the name under which we keep the unknown.
NAMES = st.sampled_from(["future", "$extra", "extra", "before", "_id", "ID", ""]) | st.text(max_size=5)


@cache
def values(type_: Any) -> st.SearchStrategy[Any]:
    """Values of a type, kept fields aside."""
    return _values(type_info(type_))


@cache
def type_info(type_: Any) -> inspect.Type:
    return inspect.type_info(type_)


def _values(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StructType():
            fields = {f.name: _values(f.type) for f in info.fields if f.name != extra.EXTRA_FIELD}
            return st.builds(info.cls, **fields)
        case inspect.UnionType():
            return st.one_of([_values(member) for member in info.types])
        case inspect.ListType():
            return st.lists(_values(info.item_type), max_size=3)
        case inspect.VarTupleType():
            return st.lists(_values(info.item_type), max_size=3).map(tuple)
        case inspect.DictType():
            return st.dictionaries(st.text(max_size=6), _values(info.value_type), max_size=3)
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.StrType():
            return st.text(max_size=12)
        case inspect.IntType():
            return WHOLE
        case inspect.FloatType():
            return NUMBERS
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.AnyType():
            return JSON
        case _:
            raise AssertionError(f"the schema has a type that this file does not know: {info}")


@st.composite
def with_unknown(draw: st.DrawFn, type_: Any) -> tuple[Any, dict[str, Any]]:
    """A value, and its decoded JSON with fields that its type lacks in some of its objects, at any depth."""
    value = draw(values(type_))
    tree = json.loads(encode(value))
    for known, node in list(objects(type_info(type_), tree)):
        strewn = draw(st.dictionaries(NAMES.filter(lambda name: name not in known), JSON, max_size=2))  # noqa: B023
        node.update(strewn)
    return value, tree


def objects(info: inspect.Type, tree: Any) -> Iterator[tuple[set[str], dict[str, Any]]]:
    """Every object of the tree that stands for a struct, with the names that the struct knows."""
    match info:
        case inspect.UnionType():
            for member in info.types:
                if isinstance(member, inspect.StructType) and isinstance(tree, dict):
                    if member.tag_field is None or tree.get(member.tag_field) == member.tag:
                        yield from objects(member, tree)
                elif isinstance(member, inspect.ListType) and isinstance(tree, list):
                    yield from objects(member, tree)
        case inspect.ListType():
            for item in tree:
                yield from objects(info.item_type, item)
        case inspect.StructType():
            known = {field.encode_name for field in info.fields if field.name != extra.EXTRA_FIELD}
            yield known | {str(info.tag_field)}, tree
            for field in info.fields:
                if field.encode_name in tree:
                    yield from objects(field.type, tree[field.encode_name])
        case _:
            return
