"""Which folders a person trusts to configure the agent, by host and real path.

The nearest folder on the way up that was decided decides; a refusal is remembered as well. Only a person
decides: nothing in a folder can.
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
    """What was decided on this host."""

    def __init__(self, records: Iterable[StoredRecord] = ()) -> None:
        values = [record.value() for record in records]
        self.all = sorted((each for each in values if isinstance(each, Trust)), key=lambda each: each.path)
        self._granted = {each.path: each.granted for each in self.all}

    def about(self, path: Path) -> bool | None:
        """The decision for a folder; None where nobody has decided."""
        real = Path(os.path.realpath(path))
        for folder in (real, *real.parents):
            if (granted := self._granted.get(str(folder))) is not None:
                return granted
        return None

    def trusted(self, path: Path) -> bool:
        """Whether the folder counts as trusted: what nobody decided does not."""
        return self.about(path) is True


class Trusting:
    """Reads and writes the decisions."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    async def decisions(self) -> Decisions:
        """Those of this host."""
        return Decisions(await self._access.store.select("trust", session=host_scope(self._access.host.id)))

    async def decide(self, path: str | os.PathLike[str], *, granted: bool) -> Trust:
        """Remember a decision about a folder and everything below it."""
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
    """The real path of a folder that can be trusted: neither everything nor the whole home directory."""
    text = os.fspath(path)
    real = os.path.realpath(text) if text and "\0" not in text else ""
    if not os.path.isdir(real):  # noqa: PTH112 - false, and no error, for what is not ours to see
        raise InvalidInput(f"{text[:200]} is not a directory; name the folder of a project")
    if not is_utf8(real):
        raise InvalidInput(f"the name of {real!a} is not UTF-8, so no record can hold it; rename it")
    if real in (os.path.sep, os.path.realpath(Path.home())):
        raise Refused(f"{real} holds far more than one project; name the folder of the project")
    return real
