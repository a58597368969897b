"""What steers the agent in one folder of a project, read once.

That is: its settings files; in `.opencode/` and `.holdfast/` also agents, modes and commands, programs
(tools, plugins, hooks) and skills; and what the settings include: `{file:…}`, plugins and folders of skills
by path, with the Python files beside and below such a plugin, which it may import.
Instruction files are not among it: they are text for the model, in an untrusted folder as in a trusted one.

What must stay true: what is compared with the pins is what is loaded, so a file is read once, here, and
whoever loads one asks `Snapshot.read`. Of a link that leads out of the trusted folder both the target and the
content there are pinned: it may be a file of the same checkout, which an agent edits unasked. Reading is
bounded, and what goes beyond the bounds is an error that names it.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from holdfast.config import places
from holdfast.config.documents import folder as documents
from holdfast.config.documents.document import BYTES_MAX, Document
from holdfast.config.documents.substitute import REFERENCE
from holdfast.config.places import Folder
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.person import small_file

FILES_MAX: Final = 1_000
ENTRIES_MAX: Final = 20_000
TOTAL_BYTES_MAX: Final = 16 * 1024 * 1024
DEPTH_MAX: Final = 8
SKILL: Final = "SKILL.md"
SKILL_FOLDERS: Final = (Path(".claude/skills"), Path(".agents/skills"))
LINK: Final = "-> "

_PASSED_OVER = frozenset(("__pycache__", "node_modules", ".git", ".venv", "site-packages"))
_MARKDOWN = ("agent", "agents", "mode", "modes", "command", "commands")
_SKILLS = ("skill", "skills")
_PROGRAMS = frozenset((".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".sh"))
"""Not everything: a program may write what it remembers beside itself."""

Wanted = Callable[[str], bool]
Pins = dict[str, str]
"""By path relative to the folder: the SHA-256 of the bytes; of a link out `-> `, its target and that."""


class Snapshot:
    """One folder as it was at one moment. `top` is the trusted folder that it lies in, or is."""

    def __init__(self, folder: Path, top: Path, home: Path) -> None:
        self.folder = folder
        self._top = os.path.realpath(top)
        self._home = home
        self._data: dict[str, bytes] = {}
        self._covered: set[str] = set()
        self._pins: Pins = {}
        self._texts: dict[str, bytes] = {}
        self._entries = 0
        self._bytes = 0

    @property
    def pins(self) -> Pins:
        """What is here, by path."""
        return dict(sorted(self._pins.items()))

    @property
    def texts(self) -> dict[str, bytes]:
        """The bytes of what is here, by path, without what a link leads out to."""
        return dict(sorted(self._texts.items()))

    def covers(self, path: Path) -> bool:
        """Whether a path is one that this speaks of, be something there or not."""
        named = Path(os.path.normpath(path))
        return any(str(each) in self._covered for each in (named, *named.parents))

    def read(self, path: Path, *, bytes_max: int = BYTES_MAX) -> bytes | None:
        """The bytes of a file as they were; None where there was none. What this does not speak of is read
        now: it is the user's own.
        """
        data = self._data.get(_key(path))
        if data is None and self.covers(path):
            return None
        if data is None:
            return small_file.read(path, bytes_max=bytes_max)
        if len(data) > bytes_max:
            raise InvalidInput(
                f"{path} is larger than {bytes_max} bytes, which cannot be right; move it away"
            )
        return data

    def add(self, each: Folder) -> None:
        """Read a folder of settings."""
        for name in each.names:
            self._settings(each.path / name)
        if each.kind == "folder":
            self._covered.add(os.path.normpath(each.path))
            for name in _MARKDOWN:
                self._walk(each.path / name, lambda file: file.endswith(".md"))
            for name in documents.PROGRAMS:
                self._walk(each.path / name, lambda file: Path(file).suffix in _PROGRAMS)
            for name in _SKILLS:
                self.add_skills(each.path / name)

    def add_skills(self, path: Path) -> None:
        """Read the definitions of the skills below a folder."""
        self._walk(path, lambda file: file == SKILL)

    def _settings(self, path: Path) -> None:
        data = self._file(path)
        if data is None:
            return
        value: dict[str, Any] = {}
        # A mistake in a settings file is for the one who loads it to name.
        with contextlib.suppress(HoldfastError, UnicodeDecodeError):
            text = data.decode("utf-8-sig")
            value = Document(str(path), text, "toml" if path.suffix == ".toml" else "json", path.parent).value
        for name in _named_files(value):
            self._included(path.parent, name)
        for name in _named_plugins(value):
            self._included(path.parent, name)
            self._beside(path.parent, name)
        for name in _named_skills(value):
            at = self._meant(path.parent, name)
            if at is not None:
                self.add_skills(at)

    def _included(self, folder: Path, name: str) -> None:
        path = self._meant(folder, name)
        if path is not None and not os.path.isdir(path):  # noqa: PTH112 - false, and no error
            self._file(path)

    def _beside(self, folder: Path, name: str) -> None:
        """Read the Python files that a plugin can import as its neighbours: those beside it and below.

        A plugin that lies in the trusted folder itself has the whole project below it: of that only what
        is beside it is read.
        """
        path = self._meant(folder, name)
        if path is None or path.suffix != ".py":
            return
        real = os.path.realpath(path.parent)
        depth = 0 if Path(self._top).is_relative_to(real) else DEPTH_MAX
        for each in self._below(path.parent, lambda file: file.endswith(".py"), depth, ()):
            self._file(each)

    def _meant(self, folder: Path, name: str) -> Path | None:
        """What settings name, unless it is the user's own: outside, and not named from here."""
        if "\0" in name:
            return None
        path = self._home / name[2:] if name.startswith("~/") else folder / name
        return path if not name.startswith(("~/", "/")) or self._is_inside(path) else None

    def _is_inside(self, path: Path) -> bool:
        """Whether a path is the project's, as it is written or as it is resolved."""
        return any(
            Path(each).is_relative_to(self._top) for each in (os.path.normpath(path), os.path.realpath(path))
        )

    def _walk(self, top: Path, wanted: Wanted) -> None:
        self._covered.add(os.path.normpath(top))
        for path in self._below(top, wanted, DEPTH_MAX, ()):
            self._file(path)

    def _below(self, folder: Path, wanted: Wanted, depth: int, above: tuple[str, ...]) -> Iterator[Path]:
        real = os.path.realpath(folder)
        if not os.path.isdir(real) or real in above:  # noqa: PTH112 - no error
            return
        for name in self._names(folder):
            path = folder / name
            if not os.path.isdir(path):  # noqa: PTH112 - false, and no error, for what is not ours to see
                if wanted(name):
                    yield path
            elif depth > 0 and name not in _PASSED_OVER:
                yield from self._below(path, wanted, depth - 1, (*above, real))

    def _names(self, folder: Path) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                names = []
                for each in entries:
                    self._entries += 1
                    if self._entries > ENTRIES_MAX:
                        raise InvalidInput(
                            f"{folder} and its neighbours have more than {ENTRIES_MAX} entries, too many to "
                            "be trusted by content; move away what is no setting"
                        )
                    names.append(each.name)
        except OSError as error:
            raise InvalidInput(f"{folder} cannot be read: {error.strerror}; mend or move it") from error
        return sorted(names)

    def _file(self, path: Path) -> bytes | None:
        """Read a file, and pin it."""
        self._covered.add(os.path.normpath(path))
        key = _key(path)
        if key in self._data:
            return self._data[key]
        real = os.path.realpath(path)
        leads_out = not Path(real).is_relative_to(self._top)
        # What is pinned with its target is read there: the link may lead elsewhere by now.
        data = small_file.read(Path(real) if leads_out else path, bytes_max=BYTES_MAX)
        if data is None:
            if os.path.islink(path):  # noqa: PTH114 - one that leads nowhere, for now
                self._pin(path, f"{LINK}{real}")
            return None
        self._bytes += len(data)
        if self._bytes > TOTAL_BYTES_MAX:
            raise InvalidInput(
                f"the settings and programs of {self.folder} have more than {TOTAL_BYTES_MAX} bytes, too "
                "many to be trusted by content; move away what is no setting"
            )
        self._data[key] = data
        digest = sha256(data).hexdigest()
        if leads_out:
            self._pin(path, f"{LINK}{real} {digest}")
        else:
            self._pin(path, digest, data)
        return data

    def _pin(self, path: Path, value: str, data: bytes | None = None) -> None:
        name = os.path.relpath(os.path.normpath(path), self.folder)
        try:
            f"{name}{value}".encode()
        except UnicodeEncodeError:
            raise InvalidInput(f"the name of {str(path)!a} is not UTF-8; rename it") from None
        self._pins[name] = value
        if data is not None:
            self._texts[name] = data
        if len(self._pins) > FILES_MAX:
            raise InvalidInput(
                f"{self.folder} has more than {FILES_MAX} files of settings and programs, too many to be "
                "trusted by content; move away what is no setting"
            )


def take(folder: Path, top: Path, home: Path) -> Snapshot:
    """Read what steers the agent in a folder."""
    found = Snapshot(folder, top, home)
    for each in places.of_project_folder(folder):
        found.add(each)
    for name in SKILL_FOLDERS:
        found.add_skills(folder / name)
    return found


def take_named(each: Folder, top: Path, home: Path) -> Snapshot:
    """Read a folder or file of settings that the environment names."""
    found = Snapshot(each.trust_path, top, home)
    found.add(each)
    return found


def _key(path: Path) -> str:
    return os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118 - links of the folder resolved


def _named_files(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield from (found[2].strip() for found in REFERENCE.finditer(value) if found[1] == "file")
        case dict():
            for item in value.values():
                yield from _named_files(item)
        case list():
            for item in value:
                yield from _named_files(item)
        case _:
            return


def _named_plugins(value: dict[str, Any]) -> Iterator[str]:
    for key in ("plugin", "plugins"):
        named = value.get(key)
        for each in named if isinstance(named, list) else ():
            name = each[0] if isinstance(each, list) and each else each
            if isinstance(name, str) and name.startswith(("./", "../", "/", "file://")):
                yield name.removeprefix("file://")


def _named_skills(value: dict[str, Any]) -> Iterator[str]:
    skills = value.get("skills")
    named = skills.get("paths") if isinstance(skills, dict) else skills
    for each in named if isinstance(named, list) else ():
        if isinstance(each, str) and "://" not in each:
            yield each
