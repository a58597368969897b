"""What of a record can be searched, how text falls into words, and the piece of it that a hit shows.

Pure, and the same for every backend. Tool output and reasoning are left out on purpose: they are many
times the rest, and they are not what users look for.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from holdfast.schema import typed
from holdfast.schema.stored import Kind

TEXT_CHARS_MAX = 200_000
WORD_CHARS_MAX = 64
QUERY_WORDS_MAX = 64
_DEPTH_MAX = 20

_WORD = re.compile(r"[^\W_]+")
_BLANKS = re.compile(r"\s+")
_ASCII_WORDS = (
    bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128)) + b" " * 128
)
"""Of each byte the letter or digit it stands for in a folded word, or a blank."""


class _State(msgspec.Struct, frozen=True):
    input: object = None
    title: object = None


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    text: object = None
    filename: object = None
    files: object = None
    prompt: object = None
    description: object = None
    state: _State = _State()


class _Titled(msgspec.Struct, frozen=True):
    title: str = ""


_part = typed.decoder(_Part)
_titled = typed.decoder(_Titled)


def searchable(kind: Kind, data: bytes) -> str:
    """The text under which a stored record is found; empty when there is none, or when it cannot be read."""
    try:
        if kind == "session":
            return _titled.decode(data).title[:TEXT_CHARS_MAX]
        if kind == "part":
            return _joined(_texts(_part.decode(data)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    return ""


def _texts(part: _Part) -> Iterator[str]:
    match part.type:
        case "text":
            yield from _strings(part.text)
        case "tool":
            yield from _strings(part.state.title)
            yield from _strings(part.state.input)
        case "file":
            yield from _strings(part.filename)
        case "patch":
            yield from _strings(part.files)
        case "subtask":
            yield from _strings(part.description)
            yield from _strings(part.prompt)
        case _:
            pass


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    """Every string inside a JSON value; keys are not content."""
    if isinstance(value, str):
        yield value
    elif depth < _DEPTH_MAX and isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.values():
            yield from _strings(item, depth + 1)


def _joined(texts: Iterable[str]) -> str:
    pieces, room = [], TEXT_CHARS_MAX
    for text in texts:
        if room <= 0:
            break
        pieces.append(text[:room])
        room -= len(text) + 1
    return "\n".join(pieces)


def words_of(text: str) -> list[str]:
    """The words of a text, folded: runs of letters and digits of any script. All else separates them."""
    if text.isascii():  # Three times as fast, and most text is.
        words = text.encode().translate(_ASCII_WORDS).decode().split()
    else:
        words = _WORD.findall(text.casefold())
    return [word[:WORD_CHARS_MAX] for word in words] if len(text) > WORD_CHARS_MAX else words


def query_words(text: str) -> list[str]:
    """The different words of the user's query, in order, as many as an index is asked for at once.

    They are words and nothing else, so no engine can take one for an operator.
    """
    return list(dict.fromkeys(words_of(text[:TEXT_CHARS_MAX])))[:QUERY_WORDS_MAX]


def snippet(text: str, words: Sequence[str], width: int = 160) -> str:
    """About `width` characters of the text around the first place where a word stands, on one line."""
    at = _first(text, words)
    begin = max(0, at - width // 3)
    end = min(len(text), begin + width)
    begin = max(0, end - width)
    piece = _BLANKS.sub(" ", text[begin:end]).strip()
    return ("… " if begin > 0 else "") + piece + (" …" if end < len(text) else "")


def _first(text: str, words: Sequence[str]) -> int:
    """Where one of the words first stands by itself, else inside another, else the beginning."""
    wanted = {word.casefold() for word in words}
    for match in _WORD.finditer(text):
        if match[0].casefold()[:WORD_CHARS_MAX] in wanted:
            return match.start()
    lowered = text.lower()
    found = [at for word in words if (at := lowered.find(word.lower())) >= 0]
    return min(found, default=0)
