"""What programs that run in a box for a workspace may reach: commands of agents, and MCP servers."""

import os
from pathlib import Path
from typing import Final

from holdfast.config.places import Places
from holdfast.errors import ContextError
from holdfast.location.box import leftovers
from holdfast.location.box.compose import BoxPlaces, compose
from holdfast.location.box.policy import BoxPolicy, Mode
from holdfast.person import directories, temporary
from holdfast.person.private import make_folder
from holdfast.schema.config import SandboxConfig

_OUTPUT: Final = "tool-output"
_SKILLS: Final = ("skills", "skill")


def box_policy(
    places: Places, settings: SandboxConfig, mode: Mode, *, stored_at: Path | None, owner: str
) -> BoxPolicy:
    """The policy. `owner` names the folder of its temporary files: a session, or a server. It looks at the
    disk.
    """
    data, config, state = directories.data(), directories.config(), directories.state()
    opencode = directories.opencode_config()
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    skills = [folder / name for folder in (config, opencode) for name in _SKILLS]
    return compose(
        BoxPlaces(
            worktree=places.worktree,
            home=places.home,
            own=(data, config, state, directories.cache(), opencode, directories.opencode_data()),
            store=stored_at,
            readable=(data / _OUTPUT, *skills),
            temporary=_temporary(owner),
            runtime=Path(runtime) if runtime.startswith("/") else None,
            caches=state / leftovers.CACHES,
        ),
        settings,
        mode=mode,
    )


def _temporary(owner: str) -> Path | None:
    """A folder for temporary files; None where there can be none."""
    try:
        folder = temporary.folder() / owner
        make_folder(folder)
    except (ContextError, OSError):
        return None
    leftovers.note_use(folder)
    return folder
