"""Judges JSON schemas, and values by them. Also a program: a process can be ended, a thread cannot.

Schemas are a caller's, and some keywords make the work grow without a bound, so `structured.py` decides where
this runs. As a program it reads one `Task` as JSON and prints the problems; it imports nothing of Holdfast,
since it is started without the caller's environment.
"""

from typing import Any, Final, TypedDict

ERRORS_MAX: Final = 5
MEMORY_BYTES: Final = 1 << 30
# fmt: off
PLAIN: Final = frozenset((
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "minimum",
    "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "minItems", "maxItems", "minProperties", "maxProperties", "$schema", "$id", "$comment", "title",
    "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
))
# fmt: on
"""Keywords with which each part of a value is judged by one part of the schema, once."""
DEPTH_MAX: Final = 100


class Task(TypedDict):
    """What is to be judged: the schema alone, or a value by it. `path` is where modules are found."""

    schema: Any
    value: Any
    judges_value: bool
    path: list[str]
    cpu_s: int


def problems(task: Task) -> list[str]:
    """What is wrong, the first few; nothing when all is well."""
    if task["judges_value"]:
        return value_problems(task["schema"], task["value"])
    return schema_problems(task["schema"])


def schema_problems(schema: Any) -> list[str]:
    """Why it is no schema."""
    import jsonschema

    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as error:
        return [error.message[:200]]
    except RecursionError:
        return ["it is nested too deeply"]
    return []


def value_problems(schema: Any, value: Any) -> list[str]:
    """Where a value does not fit, the first few."""
    import jsonschema
    from referencing import Registry

    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)(
        schema,
        registry=Registry(),  # Nothing is fetched: an unknown reference is an error.
    )
    found = []
    try:
        for error in validator.iter_errors(value):
            where = "/".join(map(str, error.absolute_path)) or "the answer"
            found.append(f"{where}: {error.message[:200]}")
            if len(found) == ERRORS_MAX:
                break
    except Exception as error:  # noqa: BLE001 - a schema of the caller's may fail in any way when it is used
        found.append(f"the schema cannot be applied: {type(error).__name__}")
    return found


def is_plain(schema: Any, depth: int = 0) -> bool:
    """Whether the work of a check is bounded by the sizes of schema and value."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict) or depth > DEPTH_MAX or not schema.keys() <= PLAIN:
        return False
    properties = schema.get("properties", {})
    inner = [*properties.values()] if isinstance(properties, dict) else [None]
    inner += [schema[name] for name in ("items", "additionalProperties") if name in schema]
    return all(is_plain(each, depth + 1) for each in inner)


def main() -> None:
    """Judge what stands on the standard input; bounded also where no parent is left to end it."""
    import json
    import resource
    import sys

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    task: Task = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (task["cpu_s"], task["cpu_s"] + 1))
    sys.path[:] = task["path"]
    json.dump(problems(task), sys.stdout)


if __name__ == "__main__":
    main()
