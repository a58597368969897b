"""Opens a file that claims to hold sessions, without believing it: size, JSON, shape, ids.

The records inside stay undecoded bytes of the one buffer, so memory is in proportion to the file. Whatever
is wrong is one `InvalidInput` that says where in the file.
"""

import os
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal, TypeVar

import msgspec

from holdfast.errors import InvalidInput, NotFound
from holdfast.schema import typed
from holdfast.schema.wire import Count
from holdfast.store.exchange.portable.export import VERSION
from holdfast.text import quoted

FILE_BYTES_MAX = 512 * 1024 * 1024
MESSAGE_MAX = 400

T = TypeVar("T")

Data = bytes | bytearray | memoryview | str | os.PathLike[str]
"""The content of a file, or where it stands: text is a path."""


class MessageEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    info: msgspec.Raw
    parts: list[msgspec.Raw]


class BesideEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record between the messages: `after` that many of them."""

    after: Count
    kind: Literal["epoch", "prompt", "request", "placed"]
    value: msgspec.Raw


class SessionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One session of a portable file."""

    session: msgspec.Raw
    messages: list[MessageEntry]
    records: list[BesideEntry] = []
    todos: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    diffs: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class PortableFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    holdfast: int
    sessions: list[SessionEntry]


class _OpenCodeMessage(msgspec.Struct, frozen=True):
    info: msgspec.Raw
    parts: list[msgspec.Raw]


class _OpenCodeFile(msgspec.Struct, frozen=True):
    info: msgspec.Raw
    messages: list[_OpenCodeMessage]


class OpenCodeFile(msgspec.Struct, frozen=True):
    """OpenCode's export, in the form of a session of our own file."""

    entry: SessionEntry


class Located(msgspec.Struct, frozen=True):
    """A session of a file, and how messages about it name its place and its head."""

    entry: SessionEntry
    where: str
    head: str


class _Probe(msgspec.Struct, frozen=True):
    """What tells the two formats apart."""

    holdfast: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    info: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    messages: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def read(data: Data, file_bytes_max: int) -> tuple[bytes | bytearray | memoryview, str]:
    """The bytes and a name for them in messages; too many of them are refused before they are read."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        name, size = "the file", len(data)
    else:
        name = os.fspath(data)
        size = _size(name)
    if size > file_bytes_max:
        raise InvalidInput(f"{name} has {size} bytes; at most {file_bytes_max} are read at once")
    if isinstance(data, (bytes, bytearray, memoryview)):
        return data, name
    try:
        with Path(name).open("rb") as file:
            # One byte more than allowed tells a file that grew since it was measured.
            content = file.read(file_bytes_max + 1)
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}") from error
    if len(content) > file_bytes_max:
        raise InvalidInput(f"{name} has more than {file_bytes_max} bytes, which is the limit")
    return content, name


def parse(data: bytes | bytearray | memoryview, name: str) -> PortableFile | OpenCodeFile:
    """The file's outer shape, by which its format is known."""
    probe = decode(_Probe, data, name)
    if probe.holdfast is not msgspec.UNSET:
        version = decode(int, probe.holdfast, f"{name}: $.holdfast")
        if version != VERSION:
            newer = "written by a later version; upgrade Holdfast" if version > VERSION else "not a version"
            raise InvalidInput(f"{name}: $.holdfast is {version}: {newer}")
        return decode(PortableFile, data, name)
    if probe.info is not msgspec.UNSET and probe.messages is not msgspec.UNSET:
        foreign = decode(_OpenCodeFile, data, name)
        messages = [MessageEntry(message.info, message.parts) for message in foreign.messages]
        return OpenCodeFile(SessionEntry(foreign.info, messages))
    raise InvalidInput(
        f"{name} holds no session: neither `holdfast`, as in our own format, "
        "nor `info` and `messages`, as in OpenCode's"
    )


def located(file: PortableFile | OpenCodeFile, name: str) -> list[Located]:
    """The sessions of a file."""
    if isinstance(file, OpenCodeFile):
        return [Located(file.entry, f"{name}: $", f"{name}: $.info")]
    places = (f"{name}: $.sessions[{number}]" for number in range(len(file.sessions)))
    return [
        Located(entry, where, f"{where}.session") for where, entry in zip(places, file.sessions, strict=True)
    ]


def decode(type_: type[T], data: Any, where: str) -> T:
    """A value of the file's outer shape; every way to fail says where."""
    try:
        return typed.decode(data, type_)
    except msgspec.ValidationError as error:
        raise InvalidInput(line(f"{where}: {error}")) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(line(f"{where} is not JSON: {error}")) from error
    except RecursionError as error:
        raise InvalidInput(f"{where}: the JSON is nested too deeply") from error


def line(message: str) -> str:
    """One line of bounded length: a hostile file speaks in messages, but only so far."""
    return quoted(message, MESSAGE_MAX)


def _size(path: str) -> int:
    """The size of a regular file: anything else, such as a pipe, might never end."""
    if "\0" in path:
        raise InvalidInput("the path of the file to import holds a NUL; give another")
    try:
        status = Path(path).stat()
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    if not S_ISREG(status.st_mode):
        raise InvalidInput(f"{path} is not a file")
    return status.st_size
