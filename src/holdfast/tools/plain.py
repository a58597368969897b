"""What a tool or plugin gave, as it can be recorded: the value that its JSON brings back.

What must stay true: what comes from here can be written, and read again wherever it was put; nobody who keeps
the original can change it.
"""

from typing import Any, Final, TypeVar

import msgspec

from holdfast.errors import InvalidInput
from holdfast.schema.wire import decode, encode
from holdfast.text import all_mended

T = TypeVar("T")

DEPTH_MAX: Final = 200
"""Reading nested values takes stack, and it is not known how much of it the reader has left."""


def plain(type_: type[T], value: Any, *, exact: bool = False) -> T:
    """The value of `type_` that `value` stands for; `InvalidInput` says why there is none.

    Text that is no Unicode (a file may have such a name) is mended, unless the value is to stay `exact`.
    """
    try:
        data = encode(value)
    except InvalidInput as error:
        if exact or not isinstance(error.__cause__, UnicodeEncodeError):
            raise
        data = encode(_all_mended(value))
    if data.count(b"[") + data.count(b"{") > DEPTH_MAX and _is_deep(msgspec.json.decode(data)):
        raise InvalidInput("it is nested too deeply")
    return decode(type_, data)


def described(error: BaseException) -> str:
    """An error on one line, which can be written down; without its message where that raises."""
    try:
        words = str(error)
    except BaseException:  # noqa: BLE001 - an error of a tool may fail in any way when it is asked
        words = ""
    line = " ".join(f"{type(error).__name__}: {words}".split()).removesuffix(":")
    return line[:500].encode(errors="replace").decode()


def _all_mended(value: Any) -> Any:
    try:
        return all_mended(value)
    except RecursionError:
        raise InvalidInput("it is nested too deeply") from None


def _is_deep(value: Any) -> bool:
    """No recursion: the depth is what is in question."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEPTH_MAX):
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True
