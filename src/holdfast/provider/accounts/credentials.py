"""The user's credentials: our own file, and OpenCode's `auth.json` underneath, which is only read.

Both have OpenCode's shape: a provider's id, then `{type: "api", key}`, `{type: "oauth", access, …}` or
`{type: "wellknown", key, token}` (for a host: `key` names the variable that other programs set for its
settings; here the token goes to the host and nowhere else). Ours wins.

What must stay true: our file is readable by the user alone; entries that we do not understand survive an
edit; no secret is in any message, not even a part of a broken file.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.errors import ContextError, InvalidInput
from holdfast.person import directories, small_file
from holdfast.provider.accounts.secret import Credential, Origin, Secret
from holdfast.schema import typed
from holdfast.schema.wire import JsonMap

KEY_MAX = 16 * 1024
PRIVATE = 0o600


class _Stored(msgspec.Struct, kw_only=True):
    type: str = ""
    key: str = ""
    token: str = ""
    access: str = ""
    metadata: dict[str, str] = {}


def our_file() -> Path:
    """Where our own are."""
    return directories.data() / "credentials.json"


def opencode_file() -> Path:
    """Where OpenCode keeps its."""
    return directories.opencode_data() / "auth.json"


def load() -> dict[str, Credential]:
    """All that can be used, by provider (or by host)."""
    return _read(opencode_file(), "opencode") | _read(our_file(), "file")


def save_key(provider_id: str, key: Secret) -> None:
    """Remember a key; the one before it is forgotten."""
    text = _one_word(key, provider_id)
    _edit(lambda entries: {**entries, provider_id: {"type": "api", "key": text}})


def save_token(host: str, variable: str, token: Secret) -> None:
    """Remember the token of a host, by its address; other programs know it by the name `variable`."""
    text = _one_word(token, host)
    _edit(lambda entries: {**entries, host: {"type": "wellknown", "key": variable, "token": text}})


def _one_word(key: Secret, owner: str) -> str:
    text = key.reveal().strip()
    if not text or len(text) > KEY_MAX or any(not sign.isprintable() or sign.isspace() for sign in text):
        raise InvalidInput(f"that is no key for {owner}: a key is one word without spaces")
    return text


def forget(provider_id: str) -> bool:
    """Remove an entry from our file; whether there was one."""
    if provider_id not in _entries(our_file(), small_file.read(our_file())):
        return False
    _edit(lambda entries: {id: entry for id, entry in entries.items() if id != provider_id})
    return True


def _read(path: Path, origin: Origin) -> dict[str, Credential]:
    found = {}
    for id, entry in _entries(path, small_file.read(path)).items():
        credential = _credential(entry, origin)
        if credential is not None:
            found[id] = credential
    return found


def _credential(entry: object, origin: Origin) -> Credential | None:
    """One entry; None for what a newer program may have written."""
    try:
        stored = typed.convert(entry, _Stored)
    except msgspec.ValidationError:
        return None
    match stored.type:
        case "api" if stored.key:
            return Credential(type="api", secret=Secret(stored.key), origin=origin, metadata=stored.metadata)
        case "oauth" if stored.access:
            return Credential(type="oauth", secret=Secret(stored.access), origin=origin)
        case "wellknown" if stored.token:
            return Credential(
                type="wellknown", secret=Secret(stored.token), origin=origin, variable=stored.key or None
            )
        case _:
            return None


def _entries(path: Path, data: bytes | None) -> JsonMap:
    if data is None or not data.strip():
        return {}
    try:
        return msgspec.json.decode(data, type=JsonMap)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Neither the data nor the decoder's words about it are shown: they may hold a key.
        raise ContextError(f"{path} is not a JSON object of credentials; mend it or move it away") from None


def _edit(change: Callable[[JsonMap], JsonMap]) -> None:
    path = our_file()

    def editor(data: bytes | None) -> bytes:
        changed = change(_entries(path, data))
        return msgspec.json.format(msgspec.json.encode(changed), indent=2) + b"\n"

    small_file.edit(path, editor, mode=PRIVATE)
