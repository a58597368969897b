"""One settings file: its text, what it says, and where it says it.

What must stay true: an error is one line that begins with file, line and column, and shows nothing of the
file's values, which may be secrets.
"""

import re
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, Literal, Protocol

from holdfast.config.documents import markdown, positions
from holdfast.config.documents.positions import KeyPath
from holdfast.errors import InvalidInput
from holdfast.person import small_file

BYTES_MAX = 1024 * 1024

# The same setting under its older or newer name, for finding it in the text.
_SPELT = {
    "agent": ("agents", "mode", "modes"),
    "command": ("commands",),
    "provider": ("providers",),
    "permission": ("permissions", "tools"),
    "snapshot": ("snapshots",),
    "plugin": ("plugins",),
    "attachment": ("attachments",),
    "references": ("reference",),
    "share": ("autoshare",),
    "steps": ("maxSteps",),
    "top_p": ("topP",),
    "prompt": ("system",),
}


class Document:
    """A parsed file, or a text from elsewhere that is shown under a name."""

    def __init__(
        self,
        source: str,
        text: str,
        form: Literal["json", "toml", "markdown", "given"],
        folder: Path,
        value: dict[str, Any] | None = None,
    ) -> None:
        self.source = source
        self.text = text
        self.form = form
        self.folder = folder
        """Where its relative paths begin."""
        self.value = _parsed(self) if value is None else value

    @cached_property
    def _places(self) -> dict[KeyPath, tuple[int, int]]:
        """Line and column of every key."""
        match self.form:
            case "json":
                return self._placed(positions.of_json(self.text))
            case "toml":
                return self._placed(positions.of_toml(self.text))
            case "markdown":
                return self._in_markdown()
            case "given":
                return {}

    def _placed(self, offsets: dict[KeyPath, int]) -> dict[KeyPath, tuple[int, int]]:
        breaks = positions.line_breaks(self.text)
        return {path: positions.line_and_column(breaks, offset) for path, offset in offsets.items()}

    def _in_markdown(self) -> dict[KeyPath, tuple[int, int]]:
        """The file is one entry, which its front matter does not say."""
        ((kind, entries),) = self.value.items()
        (name,) = entries
        found = markdown.positions(self.text)
        return {(kind,): (1, 1), (kind, name): (1, 1)} | {(kind, name, *p): at for p, at in found.items()}

    def line_of(self, path: KeyPath) -> tuple[int, int]:
        """Line and column of a key, or of the nearest one above it that can be found."""
        known = self._places
        trails: list[KeyPath] = [()]
        best = (1, 1)
        for key in path:
            names = (key, *(_SPELT.get(key, ()) if isinstance(key, str) else ()))
            trails = [(*trail, name) for trail in trails for name in names if (*trail, name) in known]
            if not trails:
                break
            best = known[trails[0]]
        return best

    def repeated(self) -> list[tuple[KeyPath, int]]:
        """Keys that stand twice in one object, with the offset of the later one. Only JSON lets them pass."""
        return positions.repeated(self.text) if self.form == "json" else []

    def at(self, offset: int) -> str:
        """`file:line:column` of a place in the text."""
        line, column = positions.line_and_column(positions.line_breaks(self.text), offset)
        return f"{self.source}:{line}:{column}"

    def where(self, path: KeyPath = ()) -> str:
        """`file:line:column` of a key."""
        line, column = self.line_of(path)
        return f"{self.source}:{line}:{column}"


class Read(Protocol):
    """Reads a small file; None where there is none."""

    def __call__(self, path: Path, /, *, bytes_max: int) -> bytes | None: ...


def read(path: Path, reader: Read = small_file.read) -> Document | None:
    """The file; None where there is none. Devices, pipes and huge files are refused by name."""
    text = text_of(path, reader=reader)
    if text is None:
        return None
    return Document(str(path), text, "toml" if path.suffix == ".toml" else "json", path.parent)


def text_of(path: Path, bytes_max: int = BYTES_MAX, *, reader: Read = small_file.read) -> str | None:
    """The text of a small file; None where there is none."""
    data = reader(path, bytes_max=bytes_max)
    if data is None:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise InvalidInput(f"{path}:{line}:{column}: is not UTF-8; save the file as UTF-8") from error


def _parsed(document: Document) -> dict[str, Any]:
    value = _toml(document) if document.form == "toml" else _json(document)
    if not isinstance(value, dict):
        raise InvalidInput(f"{document.where()}: settings are an object: {{ … }}")
    return value


def _json(document: Document) -> Any:
    import pyjson5

    if not document.text.strip():
        return {}
    try:
        value = pyjson5.decode(document.text)
    except pyjson5.Json5DecoderException as error:
        raise _fault(document, error.args) from None
    if "NaN" in document.text or "Infinity" in document.text:
        _refuse_infinite(document, value, ())
    return value


def _fault(document: Document, problem: tuple[Any, ...]) -> InvalidInput:
    """The parser knows roughly where it stopped, and exactly at which sign."""
    near = re.search(r"near (\d+)", problem[0])
    at = max(0, min(int(near[1]) if near else 0, len(document.text)) - 1)
    sign = {b"comma": ",", b"colon": ":"}.get(problem[2], problem[2]) if len(problem) > 2 else None
    what = "is not finished"
    if "NumericLiteral" in problem[0]:
        what = "a number that is not finite, or not a number at all"
    elif "nesting" in problem[0]:
        what = "is nested too deeply"
    elif isinstance(sign, str) and sign:
        at = max(at, document.text.find(sign, at))
        what = f"unexpected {sign!r}"
    line, column = positions.line_and_column(positions.line_breaks(document.text), at)
    return InvalidInput(f"{document.source}:{line}:{column}: {what}; this is not valid JSON")


def _toml(document: Document) -> Any:
    import tomllib

    try:
        return tomllib.loads(document.text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (place[1], place[2]) if place else (document.text.count("\n") + 1, 1)
        raise InvalidInput(f"{document.source}:{line}:{column}: this is not valid TOML") from None
    except RecursionError:
        raise InvalidInput(f"{document.source}:1:1: is nested too deeply") from None


def _refuse_infinite(document: Document, value: Any, path: KeyPath) -> None:
    if isinstance(value, float) and not isfinite(value):
        raise InvalidInput(f"{document.where(path)}: {'.'.join(map(str, path))} is not a finite number")
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        _refuse_infinite(document, item, (*path, key))
