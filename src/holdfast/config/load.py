"""Reads the settings of a directory: every layer in its order, the later over the earlier.

1. the user's own: OpenCode's folder, then ours
2. provider hosts that the user logged in to (`well_known`)
3. files of the project, from the top of the checkout down to the directory
4. `.opencode/` and `.holdfast/` folders on the same way
5. the folder named by CONFIG_DIR
6. the file named by CONFIG
7. the JSON in CONFIG_CONTENT

then the flags that stand for settings. What must stay true: files of a project that is not trusted are kept
apart until all other layers are laid (`distrust`), so they can neither override nor be mixed with them.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast import flags
from holdfast.config import places
from holdfast.config.documents import convert, document, folder, substitute
from holdfast.config.documents.document import Document
from holdfast.config.instructions import InstructionSource
from holdfast.config.layers import check, finish, sandbox
from holdfast.config.layers.merge import Merged, Origin
from holdfast.config.loaded import ConfigFolder, Loaded
from holdfast.config.pins.project_trust import Granted, ProjectTrust
from holdfast.config.places import Folder, Places
from holdfast.config.untrusted import adopt, distrust, host_providers, well_known
from holdfast.config.untrusted.adopt import UntrustedEntries
from holdfast.config.untrusted.distrust import Reduced
from holdfast.config.untrusted.folders import UntrustedFolders
from holdfast.config.untrusted.well_known import Remote
from holdfast.errors import InvalidInput
from holdfast.schema import typed
from holdfast.schema.config import Config, PermissionConfig

Trusted = Callable[[Path], bool]


def load(where: Places, *, trusted: Granted | bool, remote: Sequence[Remote] = ()) -> Loaded:
    """The settings. `trusted` answers for a folder of the project whether the user trusts it, and as what."""
    return _Loading(where, trusted if callable(trusted) else lambda _: trusted).load(remote)


def load_own(where: Places) -> Config:
    """The settings that the user's own files and variables make, wherever they work."""
    return _Loading(where, lambda _: False).load_own()


class _Loading:
    """The layers so far."""

    def __init__(self, where: Places, granted: Granted) -> None:
        self.where = where
        self.trust = ProjectTrust(granted, where.home)
        self.merged = Merged()
        self.own = Merged()
        """The permissions that the user's own files and variables make."""
        self.tighter: list[tuple[dict[str, Any], Origin]] = []
        """What files of the project, trusted or not, say of the box."""
        self.untrusted_folders = UntrustedFolders(where)
        self.untrusted_entries = UntrustedEntries()
        self.folders: list[ConfigFolder] = []
        self.warnings: list[str] = []
        self.notices: list[str] = []

    def load(self, remote: Sequence[Remote]) -> Loaded:
        for way in places.downward(self.where.worktree, self.where.directory):
            self.trust.holds(way)
        for each in places.of_user(self.where):
            self.folder(each)
        hosts = [(each.host, self.host(each)) for each in remote]
        if not flags.enabled(flags.DISABLE_PROJECT_CONFIG):
            self.project()
        self.flagged()
        finish.finish(self.merged, self.where)
        finish.permission_flag(self.own, self.where)
        for wanted, origin in self.tighter:
            sandbox.tighten(self.merged, wanted, origin)
        home = str(self.where.home)
        for host, reduced in hosts:
            self.adopt(host, reduced, home)
        changed = self.trust.changed
        self.notices.extend(map(str, changed))
        self.untrusted_folders.settle(
            self.merged, self.untrusted_entries, home, changed=[each.folder for each in changed]
        )
        chosen = host_providers.chosen(
            self.merged, {well_known.url_of(each.host): each.host for each in remote}
        )
        self.notices.extend(host_providers.withhold(self.merged, chosen))
        return self.answer(chosen)

    def load_own(self) -> Config:
        for each in places.of_user(self.where):
            self.folder(each)
        self.flagged()
        return typed.convert(self.merged.value, Config)

    def project(self) -> None:
        """The files and folders of the project, each as far as it is trusted."""
        for each in places.of_project(self.where):
            self.as_trusted(each, trusted=self.trust.holds(each.trust_path))

    def as_trusted(self, each: Folder, *, trusted: bool) -> None:
        """A folder of the project: its word counts if the user trusts it as it is."""
        if trusted:
            self.folder(each)
            return
        self.untrusted_folders.read(each)
        if each.kind == "folder":
            self.folders.append(ConfigFolder(each.path, trusted=False))

    def folder(self, each: Folder) -> None:
        """A folder whose word counts."""
        for name in each.names:
            found = document.read(each.path / name, self.trust.read)
            if found is not None:
                self.lay(found, project=each.project)
        if each.kind == "folder":
            self.folders.append(ConfigFolder(each.path, trusted=True))
            for found in folder.documents(each.path, self.warnings, reader=self.trust.read):
                self.lay(found, project=each.project)

    def lay(self, found: Document, *, project: bool = False) -> None:
        """A document whose word counts. What a project says of the box waits, as it may only tighten it."""
        value = convert.modern(found.value)
        if found.form != "markdown":
            value = substitute.substituted(found, value, self.where.home, reader=self.trust.read)
        self.warnings.extend(check.check(found, value))
        known, origin = _rooted(_known(value), found.folder), Origin(found.source, found)
        if project and sandbox.KEY in known:
            wanted, left_out = sandbox.tightening(known.pop(sandbox.KEY), found.folder)
            self.tighter.append((wanted, origin))
            self.notices.extend(
                f"{origin}: {name} is left out: only your own settings loosen the box" for name in left_out
            )
        if not project and "permission" in known:
            self.own.lay({"permission": known["permission"]}, origin)
        self.merged.lay(known, origin)

    def flagged(self) -> None:
        """Layers that the environment names. A relative name means another file in each repository, so what
        it leads to inside one is the repository's own.
        """
        if named := flags.flag(flags.CONFIG_DIR):
            path = self.where.directory / Path(named).expanduser()
            project = places.belongs(named, self.where)
            if path.is_dir():
                each = Folder(path, places.IN_FOLDER, "folder", project=project, top=self.where.worktree)
                self.named(each)
            else:
                self.warnings.append(
                    f"{flags.variable_of(flags.CONFIG_DIR)} names {path}, which is no folder"
                )
        if named := flags.flag(flags.CONFIG):
            path = self.where.directory / Path(named).expanduser()
            project = places.belongs(named, self.where)
            if not os.path.exists(path):  # noqa: PTH110 - false, and no error, for what we may not see
                raise InvalidInput(f"{flags.variable_of(flags.CONFIG)} names {path}, which does not exist")
            each = Folder(path.parent, (path.name,), "files", project=project, top=self.where.worktree)
            self.named(each)
        if text := flags.flag(flags.CONFIG_CONTENT):
            source = flags.variable_of(flags.CONFIG_CONTENT) or flags.CONFIG_CONTENT
            self.lay(Document(source, text, "json", self.where.directory))

    def named(self, each: Folder) -> None:
        """A folder or file that the environment names."""
        if each.project:
            self.as_trusted(each, trusted=self.trust.holds_named(each))
        else:
            self.folder(each)

    def host(self, remote: Remote) -> Reduced:
        """A provider's host: what it may decide is laid; its agents and permissions wait."""
        found = well_known.document(remote)
        reduced = well_known.reduce(convert.modern(found.value), remote.host)
        try:
            check.check(found, reduced.value)
        except InvalidInput as error:
            self.notices.append(f"settings of {remote.host} are left out: {error}")
            return distrust.reduce({})
        laid = {
            key: item for key, item in reduced.value.items() if key not in ("agent", "command", sandbox.KEY)
        }
        self.tighter.append((reduced.value.get(sandbox.KEY, {}), Origin(found.source)))
        self.merged.lay(_known(laid), Origin(found.source))
        return reduced

    def adopt(self, host: str, reduced: Reduced, home: str) -> None:
        """The agents, commands and permissions of a host."""
        origin = Origin(well_known.url_of(host))
        known = adopt.names_in_use(self.merged)
        rules, dropped = adopt.adopt(
            reduced, origin, merged=self.merged, entries=self.untrusted_entries, known=known, home=home
        )
        if rules:
            self.untrusted_entries.restrictions.append(rules)
        if left_out := ", ".join(dict.fromkeys((*reduced.dropped, *dropped))):
            self.notices.append(f"{host} may not decide these settings, and they are left out: {left_out}")

    def answer(self, chosen: dict[str, str]) -> Loaded:
        value = self.merged.value
        entries = [
            InstructionSource(entry, self.folder_of(("instructions", index)), contained=False)
            for index, entry in enumerate(value.get("instructions", ()))
        ]
        return Loaded(
            config=typed.convert(value, Config),
            own_permission=typed.convert(self.own.value.get("permission"), PermissionConfig | None),
            value=value,
            origins=self.merged.origins,
            restrictions=tuple(self.untrusted_entries.restrictions),
            agent_restrictions=self.untrusted_entries.agent_restrictions,
            foreign_agents=frozenset(self.untrusted_entries.agents),
            foreign_commands=frozenset(self.untrusted_entries.commands),
            host_providers=chosen,
            instructions=(*entries, *self.untrusted_folders.contained),
            folders=tuple(self.folders),
            warnings=tuple(dict.fromkeys(self.warnings)),
            notices=tuple(dict.fromkeys((*self.notices, *self.untrusted_folders.notices))),
            untrusted=self.untrusted_folders.untrusted,
            untrusted_servers=self.untrusted_folders.servers,
            trust=self.trust,
        )

    def folder_of(self, path: tuple[str | int, ...]) -> Path:
        """The folder of the file that set a value."""
        origin = self.merged.origins.get(path)
        return self.where.directory if origin is None or origin.document is None else origin.document.folder


def _known(value: dict[str, Any]) -> dict[str, Any]:
    """Without the keys that are never read."""
    fields = {*Config.__struct_encode_fields__, *check.LEGACY}
    return {key: item for key, item in value.items() if key in fields and item is not None}


def _rooted(value: dict[str, Any], base: Path) -> dict[str, Any]:
    """Plugins that are named by a relative path lie beside the file that names them."""
    plugins = value.get("plugin")
    if not plugins:
        return value

    def rooted(name: str) -> str:
        return str((base / name).resolve()) if name.startswith(("./", "../")) else name

    named = [rooted(each) if isinstance(each, str) else [rooted(each[0]), *each[1:]] for each in plugins]
    return {**value, "plugin": named}
