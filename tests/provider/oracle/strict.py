"""Validates a value against an SDK's request type, and finds the fields that the type does not have."""

from typing import Any


def complaints(type_: Any, value: dict[str, Any]) -> list[str]:
    """What pydantic says against `value`, and the paths of fields that did not survive validation."""
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(type_)  # It must outlive the iterables that it hands out.
    try:
        read = adapter.validate_python(value)
        return list(_lost(value, _plain(read), "body"))
    except ValidationError as error:
        return [f"{problem['loc']}: {problem['msg']}" for problem in error.errors()][:10]


def _plain(value: Any) -> Any:
    """Iterables validate lazily: walking them is what checks them."""
    if hasattr(value, "model_dump"):  # A request may hold blocks of an answer, as the SDK's own objects.
        return value.model_dump(exclude_unset=True)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, str | bytes | int | float | None):
        return value
    return [_plain(item) for item in value]


def _lost(sent: Any, read: Any, path: str) -> list[str]:
    if isinstance(sent, dict):
        gone = [f"{path}.{name}" for name in sent if name not in read]
        return gone + [
            p for name in sent if name in read for p in _lost(sent[name], read[name], f"{path}.{name}")
        ]
    if isinstance(sent, list):
        return [
            p for n, (a, b) in enumerate(zip(sent, read, strict=True)) for p in _lost(a, b, f"{path}[{n}]")
        ]
    return [] if sent == read else [path]
