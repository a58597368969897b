"""What the model is answered when there is no such file: the names that it may have meant."""

import difflib
import posixpath

import anyio.to_thread

from holdfast.errors import HoldfastError
from holdfast.location.filesystem import Filesystem, Resolved

SIMILAR_MAX = 3
COMPARED_MAX = 500
"""Names that a missing one is compared with: it takes time by the square of their length."""
LENGTH_NEAR = 12


async def missing(filesystem: Filesystem, target: Resolved) -> str:
    """The text, for a path that the call may reach: names outside are not shown unasked."""
    similar = await anyio.to_thread.run_sync(_similar, filesystem, target, abandon_on_cancel=True)
    meant = ["Did you mean one of these?", *similar] if similar else []
    return "\n".join([f"There is no file {target.asked}.", *meant])


def _similar(filesystem: Filesystem, target: Resolved) -> list[str]:
    """Names beside a missing file that the caller may have meant."""
    try:
        beside = filesystem.resolve(str(target.real.parent))
        names = [entry.name for entry in filesystem.list(beside).entries]
    except HoldfastError:
        return []
    wanted = target.real.name.lower()
    by_lower = {name.lower(): name for name in names}
    near = [name for name in by_lower if abs(len(name) - len(wanted)) <= LENGTH_NEAR][:COMPARED_MAX]
    close = difflib.get_close_matches(wanted, near, SIMILAR_MAX, 0.6)
    holding = [name for name in by_lower if wanted in name or (len(name) > 2 and name in wanted)]
    found = list(dict.fromkeys([*close, *sorted(holding)]))[:SIMILAR_MAX]
    return [posixpath.join(str(target.asked.parent), by_lower[name]) for name in found]
