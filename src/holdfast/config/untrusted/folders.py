"""Settings from folders that are not trusted. Only the harmless part is kept, and applied last.

What must stay true: nothing in such a folder stops the user. A pipe, a huge or broken file, a link that
leads out of the worktree: each is left out and named in a notice.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from holdfast.config import places
from holdfast.config.documents import convert, document, folder
from holdfast.config.documents.document import Document
from holdfast.config.instructions import InstructionSource
from holdfast.config.layers import check, sandbox
from holdfast.config.layers.merge import Merged, Origin
from holdfast.config.places import Folder, Places
from holdfast.config.untrusted import adopt, distrust
from holdfast.config.untrusted.adopt import UntrustedEntries
from holdfast.config.untrusted.distrust import Reduced
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.schema.permission import Ruleset

NAMED_MAX = 30
SERVERS_MAX = 50
WORDS_MAX, WORD_CHARS_MAX = 20, 200


class UntrustedFolders:
    """What was set aside so far."""

    def __init__(self, where: Places) -> None:
        self.where = where
        self.untrusted: Path | None = None
        self.notices: list[str] = []
        self.contained: list[InstructionSource] = []
        self.servers: dict[str, list[str]] = {}
        """MCP servers that they name, each with its command or address: they are shown, and not started."""
        self._aside: list[tuple[Document, Reduced]] = []
        self._dropped: dict[str, list[str]] = {}
        self._known: set[str] = set()

    def read(self, each: Folder) -> None:
        """Set aside the harmless part of a folder."""
        problems: list[str] = []
        for name in each.names:
            path = each.path / name
            if self._is_known(path):
                continue
            try:
                found = document.read(path) if self._within(path) else None
            except HoldfastError as error:
                problems.append(str(error))
                continue
            if found is not None:
                self._set_aside(found, each)
            elif os.path.lexists(path) and not self._within(path):
                problems.append(f"{path} lies outside the worktree; it is left out")
        if each.kind == "folder" and not self._is_known(each.path):
            for found in folder.documents(each.path, problems, self._within):
                self._set_aside(found, each)
            for name in folder.PROGRAMS:
                if (each.path / name).is_dir():
                    self._drop(str(each.path), [f"{name}/"], each)
        self.notices.extend(f"not trusted: {problem}" for problem in problems)

    def settle(
        self, merged: Merged, entries: UntrustedEntries, home: str, *, changed: Iterable[Path] = ()
    ) -> None:
        """Take in what was set aside; the user's own layers are all laid by now. Of folders that `changed`
        since they were trusted there is a notice already.
        """
        rules: Ruleset = []
        known = adopt.names_in_use(merged)
        for found, reduced in self._aside:
            self.contained.extend(
                InstructionSource(entry, found.folder, contained=True)
                for entry in reduced.value.get("instructions", ())
            )
            origin = Origin(found.source, found)
            mine, dropped = adopt.adopt(
                reduced, origin, merged=merged, entries=entries, known=known, home=home
            )
            rules.extend(mine)
            self._drop(found.source, dropped, None)
            sandbox.tighten(merged, reduced.value.get(sandbox.KEY, {}), origin)
        if rules:
            entries.restrictions.append(rules)
        known_changed = self.untrusted is not None and any(map(self.untrusted.is_relative_to, changed))
        if self._dropped and not known_changed:
            left_out = "; ".join(f"{source}: {_some(names)}" for source, names in self._dropped.items())
            self.notices.append(
                f"{self.untrusted} is not trusted, so these settings are left out: {left_out}; "
                f"`holdfast trust {self.untrusted}` makes them count"
            )

    def _is_known(self, path: Path) -> bool:
        """Whether it was read already: a flag may name what the project has anyway."""
        plain = os.path.normpath(path)
        known = plain in self._known
        self._known.add(plain)
        return known

    def _within(self, path: Path) -> bool:
        return places.inside(path, self.where.worktree)

    def _set_aside(self, found: Document, each: Folder) -> None:
        self._note_servers(found.value.get("mcp"))
        reduced = distrust.reduce(convert.modern(found.value), found.folder)
        self._drop(found.source, reduced.dropped, each)
        try:
            check.check(found, reduced.value)
        except InvalidInput as error:
            self.notices.append(f"not trusted, and left out: {error}")
            reduced = replace(reduced, value={})
        self._aside.append((found, reduced))

    def _note_servers(self, entries: object) -> None:
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            given = (entry.get("command") or entry.get("url")) if isinstance(entry, dict) else None
            words = given if isinstance(given, list) else [given]
            if given and len(self.servers) < SERVERS_MAX:
                shown = [each[:WORD_CHARS_MAX] for each in words[:WORDS_MAX] if isinstance(each, str)]
                self.servers[str(name)] = shown

    def _drop(self, source: str, names: Iterable[str], each: Folder | None) -> None:
        names = list(dict.fromkeys(names))
        if names:
            self._dropped.setdefault(source, []).extend(names)
            if self.untrusted is None:
                self.untrusted = self.where.worktree if each is None else each.trust_path


def _some(names: list[str]) -> str:
    """The first of them; an untrusted file decides how many there are."""
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
