"""Fields that we do not know, kept. Owns how they are cut from foreign JSON, held, and put back.

A record written by another program, or by a later version of ours, may carry fields that our types lack, at
any depth. `split` cuts them off into an `Extra`, a tree that mirrors the record and holds nothing but the
unknown; `plain` puts them back. The outermost record of a value gathers what its nested structs do not know.
What must stay true: a field that we know is never overwritten by a kept one; kept fields of a list's items
come back only while the list has the same length (items have no other identity), those of a tagged struct
only while its tag is the same.

Only the slow path comes here: `wire.decode` and `wire.encode` need this file when something unknown is there.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import inspect

EXTRA_FIELD = "extra"
"""The Python name of the field in which a record keeps its `Extra`."""

EXTRA_WIRE = "$extra"
"""Its wire name, which is never written: a JSON key of this name is an unknown field like any other."""


class Extra:
    """What one object (or list) of a record held that we do not know. Opaque: never changed after it was
    made.

    A plain class on purpose: msgspec would decode a struct or dataclass from a JSON object, and no JSON may
    become an `Extra`.
    """

    __slots__ = ("inner", "length", "tag", "unknown")

    def __init__(
        self,
        *,
        unknown: Mapping[str, Any],
        inner: Mapping[str | int, "Extra"],
        tag: tuple[str, Any] | None = None,
        length: int | None = None,
    ) -> None:
        self.unknown = unknown
        self.inner = inner
        self.tag = tag
        self.length = length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Extra):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        # Kept values are JSON and do not hash; the names are enough to spread.
        return hash((self.tag, self.length, frozenset(self.unknown), frozenset(self.inner)))

    def __repr__(self) -> str:
        return f"Extra({', '.join(self.names())})"

    def _parts(self) -> tuple[object, ...]:
        return (self.tag, self.length, self.unknown, self.inner)

    def names(self) -> list[str]:
        """The paths of all kept fields, for messages and reports."""
        below = (f"{key}.{name}" for key, node in self.inner.items() for name in node.names())
        return [*self.unknown, *below]


def split(type_: Any, value: Any) -> Any:
    """Decoded JSON without the fields that `type_` lacks; each outermost record gets its `Extra` instead.

    The answer is ready for `msgspec.convert`. An unknown field with no record around it is dropped.
    """
    return _cut(_info(type_), value, gathered=False)[0]


def plain(value: Any) -> Any:
    """`value` as dicts and lists, with the kept fields of every record in it put back."""
    if isinstance(value, msgspec.Struct):
        return _plain_struct(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, msgspec.Struct) for item in value):
        return [plain(item) for item in value]
    if isinstance(value, dict) and any(isinstance(item, msgspec.Struct) for item in value.values()):
        return {key: plain(item) for key, item in value.items()}
    return value  # opaque JSON: not walked, however deep it is


def _plain_struct(value: msgspec.Struct) -> dict[str, Any]:
    config = value.__struct_config__
    # The same order as msgspec's own: tag first, then the fields as declared.
    made: dict[str, Any] = {} if config.tag is None else {str(config.tag_field): config.tag}
    kept: Extra | None = None
    names = zip(value.__struct_fields__, value.__struct_encode_fields__, _defaults(type(value)), strict=True)
    for name, wire, default in names:
        item = getattr(value, name)
        if name == EXTRA_FIELD and isinstance(item, Extra):
            kept = item
        elif item is not default:
            made[wire] = plain(item)
    if kept is not None:
        _put_back(made, kept)
    return made


def _defaults(struct: type[msgspec.Struct]) -> tuple[Any, ...]:
    """The default of each field in order; msgspec keeps those of the last fields only."""
    held = struct.__struct_defaults__
    return (msgspec.NODEFAULT,) * (len(struct.__struct_fields__) - len(held)) + held


def _put_back(target: Any, kept: Extra) -> None:
    if isinstance(target, list):
        if kept.length != len(target):
            return
        for index, node in kept.inner.items():
            _put_back(target[int(index)], node)
    elif isinstance(target, dict):
        if kept.tag is not None and target.get(kept.tag[0]) != kept.tag[1]:
            return
        for name, item in kept.unknown.items():
            target.setdefault(name, item)
        for key, node in kept.inner.items():
            _put_back(target.get(str(key)), node)


def _cut(info: Any, value: Any, *, gathered: bool) -> tuple[Any, Extra | None]:
    """The known part of `value`, and the unknown part, unless a record took it already.

    `gathered` says that an outer record takes it: then the records inside do not.
    """
    if isinstance(info, inspect.UnionType):
        info = _member(info, value)
    if isinstance(info, inspect.StructType) and isinstance(value, dict):
        return _cut_struct(info, value, gathered=gathered)
    if isinstance(info, inspect.ListType) and isinstance(value, list):
        cut = [_cut(info.item_type, item, gathered=gathered) for item in value]
        nodes: dict[str | int, Extra] = {i: node for i, (_, node) in enumerate(cut) if node is not None}
        kept = Extra(unknown={}, inner=nodes, length=len(cut)) if nodes else None
        return [item for item, _ in cut], kept
    if isinstance(info, inspect.DictType) and isinstance(value, dict):
        pairs = {key: _cut(info.value_type, item, gathered=gathered) for key, item in value.items()}
        nodes = {key: node for key, (_, node) in pairs.items() if node is not None}
        kept = Extra(unknown={}, inner=nodes) if nodes else None
        return {key: item for key, (item, _) in pairs.items()}, kept
    return value, None


def _cut_struct(info: Any, value: dict[str, Any], *, gathered: bool) -> tuple[dict[str, Any], Extra | None]:
    fields = {field.encode_name: field for field in info.fields}
    gathers = not gathered and EXTRA_WIRE in fields
    fields.pop(EXTRA_WIRE, None)
    known: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    inner: dict[str | int, Extra] = {}
    for key, item in value.items():
        if key == info.tag_field:
            known[key] = item
        elif key in fields:
            known[key], node = _cut(fields[key].type, item, gathered=gathered or gathers)
            if node is not None:
                inner[key] = node
        else:
            unknown[key] = item
    tag = None if info.tag_field is None else (info.tag_field, info.tag)
    kept = Extra(unknown=unknown, inner=inner, tag=tag) if unknown or inner else None
    if gathers and kept is not None:
        known[EXTRA_WIRE] = kept
        return known, None
    return known, kept


def _member(union: Any, value: Any) -> Any:
    """The member of a union that `value` means to be: the struct of its tag, or the container that fits."""
    for member in union.types:
        match member:
            case inspect.StructType() if isinstance(value, dict):
                if member.tag_field is None or value.get(member.tag_field) == member.tag:
                    return member
            case inspect.ListType() if isinstance(value, list):
                return member
            case inspect.DictType() if isinstance(value, dict):
                return member
            case _:
                continue
    return union


_INFOS: dict[Any, Any] = {}


def _info(type_: Any) -> Any:
    if type_ not in _INFOS:
        _INFOS[type_] = inspect.type_info(type_)
    return _INFOS[type_]
