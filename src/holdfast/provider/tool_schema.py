"""The JSON schema of a tool's input, with what the wires demand of every one. Pure."""

from holdfast.schema.wire import JsonMap


def complete_schema(schema: JsonMap) -> JsonMap:
    """The schema of an object: one that does not say so, or names no property, is refused."""
    if schema.get("type", "object") != "object":
        return schema
    return {"type": "object", "properties": {}, **schema}
