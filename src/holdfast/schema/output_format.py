"""The form that the user asks the answer to have."""

from typing import ClassVar, Literal

from holdfast.schema.wire import Count, JsonMap, Wire

RETRY_COUNT_DEFAULT = 2


class TextFormat(Wire, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Free text: the ordinary answer."""

    type: ClassVar[Literal["text"]] = "text"


class JsonSchemaFormat(Wire, frozen=True, kw_only=True, tag_field="type", tag="json_schema"):
    """A value of this JSON schema. Without `retry_count`, it is `RETRY_COUNT_DEFAULT`."""

    type: ClassVar[Literal["json_schema"]] = "json_schema"
    schema: JsonMap
    retry_count: Count | None = None


OutputFormat = TextFormat | JsonSchemaFormat


def schema_of(given: OutputFormat | None) -> JsonMap | None:
    """The schema of the answer that is asked for; None where any text will do."""
    return given.schema if isinstance(given, JsonSchemaFormat) else None
