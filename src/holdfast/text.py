"""Text from elsewhere, made fit to be shown on a line or to be written as UTF-8. Pure."""

from typing import Any, Final

import msgspec

UNKNOWN_SIGN: Final = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, instead: str = " ") -> str:
    """The text without anything that a terminal would obey, line breaks included."""
    return "".join(sign if sign.isprintable() else instead for sign in text)


def one_line(text: str, chars_max: int) -> str:
    """The words of a text on one line, within a bound; a text that is cut says so."""
    line = " ".join(printable(text).split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"


def quoted(text: str, chars_max: int) -> str:
    """What another wrote, for a message of ours: within a bound, and a sign for all that is not printable."""
    line = printable(text[: chars_max + 1], UNKNOWN_SIGN)
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"


def mended(text: str) -> str:
    """The text as Unicode: a half of a surrogate pair, which UTF-8 cannot say, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def all_mended(value: Any) -> Any:
    """A JSON value, or a struct, with every text in it mended."""
    match value:
        case str():
            return mended(value)
        case dict():
            return {all_mended(key): all_mended(item) for key, item in value.items()}
        case list() | tuple():
            return [all_mended(item) for item in value]
        case msgspec.Struct():
            return {name: all_mended(getattr(value, name)) for name in value.__struct_fields__}
        case _:
            return value
