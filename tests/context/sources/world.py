"""A person and a project for tests of sources, and what the model is told of them, turn by turn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.config.loaded import Loaded
from holdfast.context.results import Initialized, Unchanged, Updated
from holdfast.context.snapshot import Snapshot
from holdfast.context.source import ContextSource
from holdfast.context.system_context import SystemContext
from tests.config.world import World

Trusted = Callable[[Path], bool]


class Told:
    """A model's ear: `hear` gives what an observation adds to what it was told."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None

    async def hear(self, *sources: ContextSource[Any]) -> str | None:
        """The baseline at first, then the text of an update; None when there is nothing new."""
        context = SystemContext.combine(*(SystemContext.make(source) for source in sources))
        if self.snapshot is None:
            begun = await context.initialize()
            assert isinstance(begun, Initialized), begun
            self.snapshot = begun.snapshot
            return begun.baseline
        found = await context.reconcile(self.snapshot)
        if isinstance(found, Unchanged):
            return None
        assert isinstance(found, Updated), found
        self.snapshot = found.snapshot
        return found.text


class SourceWorld(World):
    """The world of settings, with a list of warnings and a say in what is trusted."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.outside = root / "outside"
        self.outside.mkdir()
        self.warnings: list[str] = []
        self.trust = False

    def trusted(self, path: Path) -> bool:
        return self.trust

    def loaded(self) -> Loaded:
        """The settings, read as far as the project is trusted."""
        return self.load(trusted=self.trusted)
