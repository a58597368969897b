"""A tool's JSON schema in the words that Gemini knows. Pure.

The wire's schema is a subset of OpenAPI's: one type each, no references, no `const`, enums of text alone, and
an unknown word is refused. What it lacks is expressed otherwise where possible (`const` is an enum of
one, `oneOf` is `anyOf`, null is `nullable`, an enum of numbers stands in the description) and left out where
it is not: the tool itself checks its input anyway.

What must stay true: the result has only words of `_KEPT` and those built here, and every schema has a type or
an `anyOf`; a schema that refers to itself ends.
"""

from typing import Any

from holdfast.schema.wire import JsonMap

_KEPT = (
    *("title", "description", "minimum", "maximum", "minLength", "maxLength", "pattern"),
    *("minItems", "maxItems"),
)
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object"})
_FORMATS = {
    "STRING": {"date-time", "enum"},
    "NUMBER": {"float", "double"},
    "INTEGER": {"int32", "int64"},
}
_DEPTH_MAX, _SCHEMAS_MAX = 32, 2_000


def parameters(schema: JsonMap) -> JsonMap | None:
    """The parameters of a function; None for one without any, since an empty object is refused."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, list):
        # The outermost schema must be an object; what only one of its forms has, none of them demands.
        forms = [_without(form, "required") for form in options if isinstance(form, dict)]
        schema = _joined(_without(schema, "anyOf", "oneOf"), forms)
    made = _Writer(schema).write(schema, ())
    return {**made, "type": "OBJECT"} if made.get("properties") else None


class _Writer:
    def __init__(self, root: JsonMap) -> None:
        self._root = root
        self._count = 0

    def write(self, schema: Any, seen: tuple[str, ...]) -> JsonMap:
        """One schema. `seen` are the references that led here."""
        self._count += 1
        if not isinstance(schema, dict) or len(seen) > _DEPTH_MAX or self._count > _SCHEMAS_MAX:
            return {"type": "STRING"}  # `true`: anything. The wire wants a type, and text can say anything.
        if isinstance(ref := schema.get("$ref"), str):
            return self._referred(schema, ref, seen)
        if isinstance(parts := schema.get("allOf"), list):
            return self.write(_joined(schema, parts), (*seen, "allOf"))
        types, nullable = _types(schema)
        kept: JsonMap = {name: schema[name] for name in _KEPT if schema.get(name) is not None}
        if nullable:
            kept["nullable"] = True
        options = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(options, list) and options:
            return self._choice(schema, kept, options, seen)
        if len(types) > 1:
            bare = _without(schema, "title", "description", "nullable")
            each = [self.write({**bare, "type": one}, (*seen, "type")) for one in types]
            return _chosen(kept, each)
        return kept | self._typed(schema, types[0], kept, seen)

    def _referred(self, schema: JsonMap, ref: str, seen: tuple[str, ...]) -> JsonMap:
        found: Any = self._root
        for step in ref.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        if ref in seen or not isinstance(found, dict):
            return {"type": "OBJECT"}
        return self.write({**found, **_without(schema, "$ref")}, (*seen, ref))

    def _choice(self, schema: JsonMap, kept: JsonMap, options: list[Any], seen: tuple[str, ...]) -> JsonMap:
        """One of several; null among them is no schema but a permission."""
        real = [option for option in options if not _is_null(option)]
        if len(real) < len(options):
            kept["nullable"] = True
        if len(real) == 1 and isinstance(real[0], dict):
            return self.write(real[0], (*seen, "anyOf")) | kept
        if not real:
            return kept | {"type": "STRING"}
        outer = {name: schema[name] for name in ("type", "properties", "required") if name in schema}
        merged = (
            {**outer, **option} if isinstance(option, dict) and "$ref" not in option else option
            for option in real
        )
        return _chosen(kept, [self.write(option, (*seen, "anyOf")) for option in merged])

    def _typed(self, schema: JsonMap, type: str, kept: JsonMap, seen: tuple[str, ...]) -> JsonMap:
        fields: JsonMap = {"type": type.upper()}
        if schema.get("format") in _FORMATS.get(fields["type"], ()):
            fields["format"] = schema["format"]
        if (values := _values(schema)) is not None:
            if type == "string":
                fields["enum"] = values
            else:
                one_of = f"One of: {', '.join(values)}."
                fields["description"] = " ".join(filter(None, (kept.get("description"), one_of)))
        if type == "array":
            fields["items"] = self._items(schema, seen)
        if type == "object":
            fields |= self._object(schema, seen)
        return fields

    def _items(self, schema: JsonMap, seen: tuple[str, ...]) -> JsonMap:
        items = schema.get("prefixItems") or schema.get("items")
        if not isinstance(items, list):
            return self.write(items, (*seen, "items"))
        return self.write({"anyOf": items}, (*seen, "items"))

    def _object(self, schema: JsonMap, seen: tuple[str, ...]) -> JsonMap:
        given = schema.get("properties")
        if not isinstance(given, dict) or not given:
            return {}
        fields: JsonMap = {
            "properties": {name: self.write(inner, (*seen, "properties")) for name, inner in given.items()}
        }
        required = schema.get("required")
        if isinstance(required, list) and (known := [name for name in required if name in given]):
            fields["required"] = known
        return fields


def _types(schema: JsonMap) -> tuple[list[str], bool]:
    """The types without null, at least one; and whether null is allowed."""
    given = schema.get("type")
    named = given if isinstance(given, list) else [given]
    nullable = "null" in named or schema.get("nullable") is True or None in (schema.get("enum") or ())
    types = [name for name in named if name in _TYPES]
    return types or [_guessed(schema)], nullable


def _guessed(schema: JsonMap) -> str:
    if "properties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    values = [schema["const"]] if "const" in schema else schema.get("enum") or [""]
    if all(isinstance(value, bool) for value in values):
        return "boolean"
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return "integer"
    return "number" if all(isinstance(value, int | float) for value in values) else "string"


def _values(schema: JsonMap) -> list[str] | None:
    """The values that are allowed, as text."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list):
        return None
    texts = [value if isinstance(value, str) else str(value) for value in values if value not in (None, "")]
    return texts or None


def _joined(schema: JsonMap, parts: list[Any]) -> JsonMap:
    """All of several as one: fields of the later win, properties and requirements add up."""
    joined = _without(schema, "allOf")
    for part in parts:
        if isinstance(part, dict):
            properties = {**joined.get("properties", {}), **part.get("properties", {})}
            required = [*joined.get("required", ()), *part.get("required", ())]
            joined = {**joined, **part}
            if properties:
                joined["properties"] = properties
            if required:
                joined["required"] = list(dict.fromkeys(required))
    return joined


def _without(schema: JsonMap, *names: str) -> JsonMap:
    return {name: value for name, value in schema.items() if name not in names}


def _chosen(kept: JsonMap, each: list[JsonMap]) -> JsonMap:
    """A choice stands alone: limits beside it are refused, and the options carry their own."""
    beside = {name: value for name, value in kept.items() if name in {"title", "description", "nullable"}}
    return {**beside, "anyOf": each}


def _is_null(option: Any) -> bool:
    if not isinstance(option, dict):
        return False
    return option.get("type") == "null" or option.get("enum") == [None] or option.get("const", "") is None
