"""A Context Source: one typed fact about the world of a session, observed by itself.

What must stay true: the renderers are pure, so the same value always gives the same text; only `load` looks
at the world. A loader that cannot look answers UNAVAILABLE, and what the model was given stays in force; one
that looked and found nothing answers ABSENT, and the model learns that what it knew no longer holds.
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from holdfast.context import keys
from holdfast.errors import ContextError
from holdfast.schema import typed, wire

T = TypeVar("T")


class Missing(Enum):
    """Why a source has no value."""

    UNAVAILABLE = "unavailable"
    ABSENT = "absent"


UNAVAILABLE: Final = Missing.UNAVAILABLE
ABSENT: Final = Missing.ABSENT


class Codec(Generic[T]):
    """Turns the value of a source into JSON and back; two values are the same when their JSON is."""

    def __init__(self, type_: type[T] | Any) -> None:
        self._type = type_

    def encode(self, value: T) -> Any:
        """The value as plain JSON data; sets are sorted, since their order is no part of the value."""
        return msgspec.to_builtins(value, str_keys=True, order="deterministic")

    def decode(self, data: Any) -> T:
        """The value of plain JSON data; one that does not fit is of another version of the source."""
        try:
            decoded: T = typed.convert(data, self._type, str_keys=True)
        except (msgspec.ValidationError, RecursionError) as error:
            raise ContextError(f"a stored context value does not fit its source: {error}") from error
        return decoded

    def canonical(self, value: T) -> bytes:
        """The value as the one JSON text that every equal value has; what JSON cannot say is refused."""
        return wire.encode(msgspec.to_builtins(self.encode(value), str_keys=True, order="sorted"))


class ContextSource(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One source. `removal` is for sources that may go away while a session lasts."""

    key: str
    codec: Codec[T]
    load: Callable[[], Awaitable[T | Missing]]
    """Called once for each observation. It should end when cancelled; after a limit it is abandoned."""
    baseline: Callable[[T], str]
    """The text at the beginning of an epoch, or when the source is first seen within one."""
    update: Callable[[T, T], str]
    """The newly effective state, given the value before and the value now."""
    removal: Callable[[T], str] | None = None
    """What the model is given when the source is gone; without it the baseline has to be rendered again."""
    waits: bool = True
    """Whether `load` may wait for anything. One that only computes is not worth a task and a limit."""

    def __post_init__(self) -> None:
        keys.check(self.key)


Loaded: TypeAlias = T | Missing
"""What a loader answers."""
