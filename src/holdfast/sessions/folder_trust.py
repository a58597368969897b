"""Which folders the user trusts to configure the agent, by host and real path.

The decision for a folder is that of the nearest folder above it, or itself, that has one; a refusal is stored
as well. Only the user decides: no file in a folder can.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from holdfast.errors import InvalidInput, Refused
from holdfast.location.project import is_utf8
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
        self._granted = {each.path: each.granted for each in self.all}

    def about(self, path: Path) -> bool | None:
        """The decision for a folder; None if the user made none."""
        real = Path(os.path.realpath(path))
        for folder in (real, *real.parents):
            if (granted := self._granted.get(str(folder))) is not None:
                return granted
        return None

    def trusted(self, path: Path) -> bool:
        """Whether the folder is trusted; not without a decision."""
        return self.about(path) is True


class FolderTrust:
    """Reads and writes the decisions."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    async def decisions(self) -> Decisions:
        """The decisions of this host."""
        return Decisions(await self._access.store.select("trust", session=host_scope(self._access.host.id)))

    async def decide(self, path: str | os.PathLike[str], *, granted: bool) -> Trust:
        """Store a decision about a folder and everything below it."""
        real = checked(path)
        trust = Trust(
            id=f"trust-{hashlib.sha256(real.encode()).hexdigest()[:32]}",
            host=self._access.host.id,
            path=real,
            granted=granted,
            time=Created(created=self._access.clock.now_ms()),
        )
        await self._access.store.commit(Batch((put_in(host_scope(trust.host), trust),)))
        return trust


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
