"""`{env:NAME}` and `{file:path}` in the texts of a settings file.

Done on values after parsing: what is put in can therefore never become a key, a comment or a second setting,
whatever signs it holds, and positions stay those of the file. It is put in once: what it brings is not looked
at again.
"""

import os
import re
from pathlib import Path
from typing import Any

from holdfast.config.documents.document import Document, Read, text_of
from holdfast.config.documents.positions import KeyPath
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.person import small_file

REFERENCE = re.compile(r"\{(env|file):([^{}\n]*)\}")


def substituted(
    document: Document, value: Any, home: Path, path: KeyPath = (), *, reader: Read = small_file.read
) -> Any:
    """The value with everything put in. A variable that is not set is empty, a missing file an error."""
    match value:
        case str() if "{env:" in value or "{file:" in value:
            return REFERENCE.sub(lambda found: _text(document, home, path, found, reader), value)
        case dict():
            return {
                key: substituted(document, item, home, (*path, key), reader=reader)
                for key, item in value.items()
            }
        case list():
            return [
                substituted(document, item, home, (*path, i), reader=reader) for i, item in enumerate(value)
            ]
        case _:
            return value


def refers(value: Any) -> bool:
    """Whether anything in the value asks for the environment or a file."""
    match value:
        case str():
            return REFERENCE.search(value) is not None
        case dict():
            return any(refers(key) or refers(item) for key, item in value.items())
        case list():
            return any(map(refers, value))
        case _:
            return False


def _text(document: Document, home: Path, path: KeyPath, found: re.Match[str], reader: Read) -> str:
    name = found[2].strip()
    if found[1] == "env":
        return os.environ.get(name, "").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    file = home / name[2:] if name.startswith("~/") else document.folder / name
    try:
        text = text_of(file, reader=reader)
    except HoldfastError as error:
        raise InvalidInput(f"{document.where(path)}: {error}") from error
    if text is None:
        raise InvalidInput(f"{document.where(path)}: there is no file {file}; create it or name another")
    return text.strip()
