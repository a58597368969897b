"""The user's own settings file, changed value by value: what they wrote stays as it is."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.config import places
from holdfast.config.documents import document, edit
from holdfast.config.layers import check
from holdfast.errors import InvalidInput, Refused
from holdfast.person import directories, small_file

PRIVATE = 0o600


def path() -> Path:
    """The file that is changed: the one that counts most of those that are there."""
    folder = directories.config()
    written = [folder / name for name in places.IN_FOLDER if name.endswith((".json", ".jsonc"))]
    ours = [each for each in written if each.stem == "holdfast"]
    return next((each for each in reversed(ours) if each.exists()), ours[0])


def set_value(key: tuple[str, ...], value: Any) -> Path:
    """Set one value; `InvalidInput` if it is none that settings take."""
    return _change(lambda text: edit.with_value(text, key, value))


def remove(key: tuple[str, ...]) -> Path | None:
    """Remove one value; None if it is not there."""
    if not has(key):
        return None
    return _change(lambda text: edit.without(text, key) if _has(text, key) else text)


def has(key: tuple[str, ...]) -> bool:
    """Whether it is there."""
    return _has(document.text_of(path()) or "", key)


def _has(text: str, key: tuple[str, ...]) -> bool:
    target: Any = document.Document(str(path()), text, "json", path().parent).value
    for name in key:
        if not isinstance(target, dict) or name not in target:
            return False
        target = target[name]
    return True


def _change(change: Callable[[str], str]) -> Path:
    file = path()

    def editor(data: bytes | None) -> bytes:
        try:
            text = "" if data is None else data.decode("utf-8-sig")
            made = change(text)
        except UnicodeDecodeError:
            raise InvalidInput(f"{file} is not UTF-8; save the file as UTF-8") from None
        except Refused as error:
            raise Refused(f"{file}: {error}") from None
        found = document.Document(str(file), made, "json", file.parent)
        check.check(found, found.value)
        return made.encode()

    small_file.edit(file, editor, mode=_mode(file))
    return file


def _mode(file: Path) -> int:
    """As it was: the user may share it on purpose."""
    try:
        return stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return PRIVATE
