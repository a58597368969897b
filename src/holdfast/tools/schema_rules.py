"""Judges JSON schemas, and values by them. Also a program: a process can be ended, a thread cannot.

Schemas are a caller's or a server's, and some make the work grow without a bound, so `schema_check.py`
decides where this runs. As a program it reads one `Task` as JSON and prints the problems; it imports nothing
of Holdfast, since it is started without the caller's environment.
"""

from typing import Any, Final, Literal, TypedDict

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
LIST_MAX: Final = 32
"""How many items of different kinds a list may have whose items are compared with one another."""
PATTERN_CHARS_MAX: Final = 200

Judges = Literal["value", "schemas"]


class Task(TypedDict):
    """What is to be judged: a value by a schema, or a list of schemas. `path` is where modules are found."""

    schema: Any
    value: Any
    judges: Judges
    path: list[str]
    cpu_s: int


def problems(task: Task) -> list[str]:
    """What is wrong with a value, the first few; or with each of the schemas, empty where all is well."""
    if task["judges"] == "value":
        return value_problems(task["schema"], task["value"])
    return [schema_problem(each) for each in task["schema"]]


def schema_problem(schema: Any) -> str:
    """Why it is no schema; empty if it is one."""
    import jsonschema

    try:
        jsonschema.validators.validator_for(schema).check_schema(schema)
    except jsonschema.SchemaError as error:
        return error.message[:200] or "it is not valid"
    except RecursionError:
        return "it is nested too deeply"
    except Exception as error:  # noqa: BLE001 - the judge may fail in any way at what others made up
        return f"it cannot be judged: {type(error).__name__}"
    return ""


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


def is_quick(schema: Any, depth: int = 0) -> bool:
    """Whether judging the schema itself is work in proportion to its size.

    Some drafts compare each item of a list with each other one, unless they can be sorted; and patterns are
    compiled, where flags can make one character a class of a million.
    """
    if depth > DEPTH_MAX:
        return False
    if isinstance(schema, list):
        kinds = set(map(type, schema))
        can_be_sorted = kinds == {str} or kinds <= {int, float}
        return (can_be_sorted or len(schema) <= LIST_MAX) and all(
            is_quick(each, depth + 1) for each in schema
        )
    if not isinstance(schema, dict):
        return True
    named = schema.get("patternProperties")
    patterns = [schema.get("pattern"), *(named if isinstance(named, dict) else ())]
    for pattern in patterns:
        if isinstance(pattern, str) and (len(pattern) > PATTERN_CHARS_MAX or "(?" in pattern):
            return False
    return all(is_quick(each, depth + 1) for each in schema.values())


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
