"""Which folders the user trusts to configure the agent, by host and real path, and as what.

The decision for a folder is that of the nearest folder above it, or itself, that has one; a refusal is stored
as well. Trust holds for the content that there was: `config.pins` compares it whenever settings are read.
Only the user decides: no file in a folder can.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.config.pins import former
from holdfast.config.pins.pinned import pinned
from holdfast.config.pins.project_trust import Changed, Grant, ProjectTrust, is_path, place_named
from holdfast.config.pins.snapshot import Snapshot
from holdfast.config.pins.unified import FileDiff, diffs
from holdfast.config.places import Folder
from holdfast.errors import InvalidInput, Refused
from holdfast.location.project import is_utf8
from holdfast.person import directories
from holdfast.schema.project_records import Trust
from holdfast.schema.times import Created
from holdfast.sessions.access import StoreAccess
from holdfast.store.batch import Batch, host_scope
from holdfast.store.put import put_in
from holdfast.store.record import StoredRecord


class Decisions:
    """The user's decisions on this host."""

    def __init__(self, records: Iterable[StoredRecord] = ()) -> None:
        values = [record.value() for record in records]
        self.all = sorted((each for each in values if isinstance(each, Trust)), key=lambda each: each.path)
        self._by_path = {each.path: each for each in self.all}

    def nearest(self, path: Path) -> Trust | None:
        """The decision for a folder; None if the user made none."""
        real = Path(os.path.realpath(path))
        for folder in (real, *real.parents):
            if (found := self._by_path.get(str(folder))) is not None:
                return found
        return None

    def about(self, path: Path) -> bool | None:
        """Whether the user trusts a folder; None if they made no decision."""
        found = self.nearest(path)
        return None if found is None else found.granted

    def grant(self, path: Path) -> Grant | bool:
        """What the user trusts a folder as; False if they do not."""
        found = self.nearest(path)
        return found is not None and found.granted and Grant(Path(found.path), found.pins or {})


class FolderTrust:
    """Reads and writes the decisions."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    async def decisions(self) -> Decisions:
        """The decisions of this host."""
        return Decisions(await self._access.store.select("trust", session=host_scope(self._access.host.id)))

    async def decide(
        self, path: str | os.PathLike[str], *, granted: bool, named: Sequence[Folder] = ()
    ) -> Trust:
        """Store a decision about a folder and everything below it, as it is now. `named` are settings that
        the environment names.
        """
        real = checked(path)
        taken: dict[str, Snapshot] = {}
        if granted:
            import anyio.to_thread

            inside = [each for each in named if _is_in(each, real)]
            taken = await anyio.to_thread.run_sync(lambda: pinned(Path(real), directories.home(), inside))
        pins = {place: each.pins for place, each in taken.items()}
        return await self._write(real, granted=granted, pins=pins, texts=former.texts_in(taken))

    async def renew(self, changed: Changed, worktree: Path) -> Trust:
        """Trust a folder that changed as the user was shown it: what changes meanwhile, and other places that
        changed, are not trusted by this. Of a folder above the worktree only the worktree is meant.
        """
        folder = changed.folder if changed.folder.is_relative_to(worktree) else worktree
        known = (await self.decisions()).nearest(folder)
        shown = {_moved(place, changed.folder, folder): each for place, each in changed.now.items()}
        pins = {place: each.pins for place, each in shown.items()}
        texts = former.texts_in(shown)
        if known is not None and known.path == str(folder):
            pins = (known.pins or {}) | pins
            texts = former.texts_of(known.id) | texts
        return await self._write(str(folder), granted=True, pins=pins, texts=texts)

    async def _write(
        self, real: str, *, granted: bool, pins: dict[str, dict[str, str]], texts: former.Texts
    ) -> Trust:
        trust = Trust(
            id=f"trust-{hashlib.sha256(real.encode()).hexdigest()[:32]}",
            host=self._access.host.id,
            path=real,
            granted=granted,
            pins=pins or None,
            time=Created(created=self._access.clock.now_ms()),
        )
        import anyio.to_thread  # Not for a command that only reads.

        used = {pin for each in pins.values() for pin in each.values()}
        kept = {pin: text for pin, text in texts.items() if pin in used}
        await anyio.to_thread.run_sync(former.keep, trust.id, kept)
        await self._access.store.commit(Batch((put_in(host_scope(trust.host), trust),)))
        return trust


def diff(trust: Trust | None, folder: Path, named: Sequence[Folder] = ()) -> list[FileDiff]:
    """What changed in a trusted folder; of one that is not trusted, all that there is. Waits for the disk."""
    now = pinned(folder, directories.home(), [each for each in named if _is_in(each, str(folder))])
    if trust is None or not trust.granted:
        return diffs({}, now, {})
    # What the environment named before may not be named now.
    before = {place: pins for place, pins in (trust.pins or {}).items() if is_path(place) or place in now}
    return diffs(before, now, former.texts_of(trust.id))


def changed(trust: Trust) -> Changed | None:
    """How a trusted folder and the places in it differ from what was trusted. Waits for the disk."""
    grant = Grant(Path(trust.path), trust.pins or {})
    compared = ProjectTrust(lambda _: grant, directories.home())
    for place in sorted({".", *filter(is_path, grant.pins)}):
        compared.holds(Path(os.path.normpath(grant.folder / place)))
    return next(iter(compared.changed), None)


def _moved(place: str, old: Path, new: Path) -> str:
    """The name of a place of one trusted folder among the pins of another."""
    return place_named(place, lambda path: os.path.relpath(old / path, new))


def _is_in(each: Folder, real: str) -> bool:
    return each.trust_path.is_relative_to(real)


def checked(path: str | os.PathLike[str]) -> str:
    """The real path of a folder; refused for the file system's root and the home directory."""
    text = os.fspath(path)
    real = os.path.realpath(text) if text and "\0" not in text else ""
    if not os.path.isdir(real):  # noqa: PTH112 - false, and no error, for what is not ours to see
        raise InvalidInput(f"{text[:200]} is not a directory; name the folder of a project")
    if not is_utf8(real):
        raise InvalidInput(f"the name of {real!a} is not UTF-8, so no record can hold it; rename it")
    if real in (os.path.sep, os.path.realpath(Path.home())):
        raise Refused(f"{real} holds far more than one project; name the folder of the project")
    return real
