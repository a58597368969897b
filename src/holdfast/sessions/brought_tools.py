"""The tools of a session: those that plugins bring, over those of its directory and of the application."""

from collections.abc import Callable

from holdfast.schema.session import Session
from holdfast.toolkit.declare import Tool
from holdfast.tools.registry import Registry
from holdfast.workspace.plugins import WorkspacePlugins
from holdfast.workspace.workspace import Workspace


class BroughtTools:
    """`own` answers the registry of a session without its plugins."""

    def __init__(self, own: Callable[[Session], Registry], plugins: WorkspacePlugins) -> None:
        self._own = own
        self._plugins = plugins
        self._known: dict[str, tuple[Registry, tuple[Tool, ...], Registry]] = {}

    def of(self, session: Session, workspace: Workspace | None) -> Registry:
        """The registry of a session; the same one as long as its plugins are."""
        below = self._own(session)
        brought = () if workspace is None else self._plugins.of(workspace).tools
        if not brought:
            return below
        known = self._known.get(session.directory)
        if known is None or known[0] is not below or known[1] != brought:
            registry = Registry(below)
            for tool in brought:
                registry.register(tool)
            known = self._known[session.directory] = (below, brought, registry)
        return known[2]
