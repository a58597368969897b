"""The plugins of each workspace, loaded when they are first needed, and again when the user trusts others."""

from collections.abc import Callable

from holdfast.plugins.discovery import PluginContext, discover
from holdfast.plugins.dispatcher import Dispatcher, Plugin
from holdfast.workspace.workspace import Workspace


class WorkspacePlugins:
    """One dispatcher a directory; `warn` gets a line for each error of a plugin."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._known: dict[str, tuple[object, Dispatcher]] = {}

    def of(self, workspace: Workspace) -> Dispatcher:
        """The plugins of a directory. Those of a folder count only where the user trusts it.

        Where something is not as it was trusted, those that run stay: an agent that changes a file must not
        be able to end a plugin that watches it.
        """
        directory = str(workspace.places.directory)
        known = self._known.get(directory)
        basis = _basis(workspace)
        if known is not None and (known[0] == basis or workspace.loaded.trust.changed):
            return known[1]
        found = Dispatcher(self._discovered(workspace), lambda trouble: self._warn(str(trouble)))
        self._known[directory] = (basis, found)
        return found

    def _discovered(self, workspace: Workspace) -> list[Plugin]:
        worktree = str(workspace.places.worktree)
        return discover(
            PluginContext(directory=str(workspace.places.directory), worktree=worktree, project=worktree),
            named=_named(workspace),
            folders=[folder.path for folder in workspace.loaded.folders if folder.trusted],
            report=lambda trouble: self._warn(str(trouble)),
            source=workspace.loaded.trust.read,
        )


def _named(workspace: Workspace) -> list[str]:
    given = workspace.loaded.config.plugin or ()
    return [each if isinstance(each, str) else each[0] for each in given]


def _basis(workspace: Workspace) -> object:
    """What decides which plugins there are: as long as it is the same they are not loaded again."""
    folders = [str(folder.path) for folder in workspace.loaded.folders if folder.trusted]
    return folders, _named(workspace), workspace.loaded.trust.pins
