"""The texts that a folder was trusted with, kept so that a later change can be shown.

Beside the store and not in it: settings may hold secrets, and records are exported. A text that is not kept,
since it is large or not UTF-8, costs its part of a diff and nothing else. What must stay true: a kept text is
shown only where it is the one that the pins name.
"""

import contextlib
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import msgspec

from holdfast.config.pins.snapshot import Snapshot
from holdfast.errors import HoldfastError
from holdfast.person import directories, small_file
from holdfast.schema import typed

TEXT_BYTES_MAX: Final = 128 * 1024
TOTAL_BYTES_MAX: Final = 2 * 1024 * 1024

Texts = dict[str, str]
"""By the SHA-256 of their bytes."""


def texts_in(taken: Mapping[str, Snapshot]) -> Texts:
    """The texts of a folder's places."""
    texts: Texts = {}
    for each in taken.values():
        for data in each.texts.values():
            if len(data) <= TEXT_BYTES_MAX:
                with contextlib.suppress(UnicodeDecodeError):
                    texts[sha256(data).hexdigest()] = data.decode()
    return texts


def keep(trust: str, texts: Texts) -> None:
    """Keep the texts that a folder is trusted with, as many as the bound lets; without any, no file."""
    path = directories.data() / "trust" / f"{trust}.json"
    if not texts:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    kept: Texts = {}
    left = TOTAL_BYTES_MAX
    for name, text in texts.items():
        left -= len(text.encode())
        if left < 0:
            break
        kept[name] = text
    small_file.write(path, msgspec.json.encode(kept))


def texts_of(trust: str) -> Texts:
    """What is kept; nothing where it cannot be read."""
    try:
        data = small_file.read(directories.data() / "trust" / f"{trust}.json")
        found = {} if data is None else typed.decode(data, Texts)
    except (HoldfastError, msgspec.MsgspecError):
        return {}
    return {name: text for name, text in found.items() if sha256(text.encode()).hexdigest() == name}
