"""The plugins of each workspace, loaded when they are first needed."""

from collections.abc import Callable

from holdfast.plugins.discovery import PluginContext, discover
from holdfast.plugins.dispatcher import Dispatcher
from holdfast.workspace.workspace import Workspace


class WorkspacePlugins:
    """One dispatcher a directory; `warn` gets a line for each error of a plugin."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._known: dict[str, Dispatcher] = {}

    def of(self, workspace: Workspace) -> Dispatcher:
        """The plugins of a directory. Those of a folder count only where the user trusts it."""
        directory = str(workspace.places.directory)
        if directory not in self._known:
            worktree = str(workspace.places.worktree)
            where = PluginContext(directory=directory, worktree=worktree, project=worktree)
            given = workspace.loaded.config.plugin or ()
            found = discover(
                where,
                named=[each if isinstance(each, str) else each[0] for each in given],
                folders=[folder.path for folder in workspace.loaded.folders if folder.trusted],
                report=lambda trouble: self._warn(str(trouble)),
                source=workspace.loaded.trust.read,
            )
            self._known[directory] = Dispatcher(found, lambda trouble: self._warn(str(trouble)))
        return self._known[directory]
