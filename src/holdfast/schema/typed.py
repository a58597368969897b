"""Makes typed values of JSON, safely in many threads.

msgspec builds the description of a type when it first meets it, and marks it as built before it is
complete (a type may contain itself). A second thread that meets the type in between reads an unfinished
description: the process dies of SIGSEGV, with every session that it runs. So every description is built here,
under one lock; without the lock a type is used only after its description, and those of all types inside it,
are complete. `tests/house/test_types.py` checks that no other file decodes into a type of ours.
"""

import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_lock = threading.RLock()
_KNOWN: dict[Any, None] = {}
_KNOWN_MAX = 4_096
"""Types that programs make on the fly must not pile up; one that is forgotten is only asked for again."""


@overload
def decoder(type_: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def decoder(type_: Any) -> msgspec.json.Decoder[Any]: ...
def decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """A decoder of JSON text into values of the type, to be kept by the caller."""
    with _lock:
        return msgspec.json.Decoder(type_)


@overload
def decode(data: bytes | bytearray | memoryview | str, type_: type[T]) -> T: ...
@overload
def decode(data: bytes | bytearray | memoryview | str, type_: Any) -> Any: ...
def decode(data: bytes | bytearray | memoryview | str, type_: Any) -> Any:
    """The value of the type that the JSON text stands for; raises what `msgspec.json.decode` raises."""
    if type_ not in _KNOWN:
        _describe(type_)
    return msgspec.json.decode(data, type=type_)


@overload
def convert(value: Any, type_: type[T], *, str_keys: bool = False) -> T: ...
@overload
def convert(value: Any, type_: Any, *, str_keys: bool = False) -> Any: ...
def convert(value: Any, type_: Any, *, str_keys: bool = False) -> Any:
    """The value of the type that plain data stands for; raises what `msgspec.convert` raises."""
    if type_ not in _KNOWN:
        _describe(type_)
    return msgspec.convert(value, type_, str_keys=str_keys)


def _describe(type_: Any) -> None:
    with _lock:
        msgspec.json.Decoder(type_)
        if len(_KNOWN) >= _KNOWN_MAX:
            _KNOWN.clear()
        _KNOWN[type_] = None
