"""Judges JSON schemas, and values by them. Also a program: a process can be ended, a thread cannot.

Schemas are a caller's. A pattern, a reference or a comparison of all items may take time without end, so only
`structured.py` decides where this runs. As a program it reads one `Task` as JSON and prints the problems; it
imports nothing of Holdfast, since it is started without the caller's environment.
"""

from collections.abc import Iterator
from typing import Any, Final, TypedDict

ERRORS_MAX: Final = 5
CPU_S: Final = 10
MEMORY_BYTES: Final = 1 << 30
RISKY: Final = frozenset(
    {"pattern", "patternProperties", "$ref", "$dynamicRef", "$recursiveRef", "uniqueItems", "format"}
)
"""Keywords whose cost is not bounded by the sizes of schema and value."""


class Task(TypedDict):
    """What is to be judged: the schema alone, or a value by it. `path` is where modules are found."""

    schema: Any
    value: Any
    judges_value: bool
    path: list[str]


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


def is_risky(schema: Any) -> bool:
    """Whether a check may take time without end. A property that is named like a keyword counts as one."""
    return any(name in RISKY for name in _names(schema))


def _names(schema: Any) -> Iterator[str]:
    todo = [schema]
    while todo:
        match todo.pop():
            case dict(fields):
                yield from fields
                todo.extend(fields.values())
            case list(items):
                todo.extend(items)
            case _:
                pass


def main() -> None:
    """Judge what stands on the standard input; bounded also where nobody is left to end it."""
    import json
    import resource
    import sys

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    task: Task = json.load(sys.stdin)
    sys.path[:] = task["path"]
    json.dump(problems(task), sys.stdout)


if __name__ == "__main__":
    main()
