"""What tests about moves share."""

from holdfast.schema.output_format import JsonSchemaFormat

FORM = JsonSchemaFormat(schema={"type": "object", "properties": {"a": {"type": "integer"}}})
