"""What a search below a folder outside the project may show of it.

What must stay true: the user's consent to a folder opens nothing below it that a rule of theirs denies, or
asks about apart.
"""

from typing import Final

from holdfast.location.filesystem import Filesystem, Resolved
from holdfast.toolkit.context import ToolContext
from holdfast.tools.builtin import access

UNSHOWN_MAX: Final = 500
"""After so many folders that may not be shown, a search ends."""
UNSHOWN: Final = (
    "(What may not be reached without the user's consent is left out. Name its folder to ask for it.)"
)


class Outside:
    """Judges what a search finds, folder by folder."""

    def __init__(self, context: ToolContext, filesystem: Filesystem, target: Resolved) -> None:
        self._context = context
        self._filesystem = filesystem
        self._target = target
        self._folders: dict[str, bool] = {}
        self._consented: str | None = None
        self.unshown = 0
        """How many folders were left out."""

    @property
    def enough(self) -> bool:
        """Whether so much was left out that the search should end."""
        return self.unshown >= UNSHOWN_MAX

    async def shows(self, name: str) -> bool:
        """Whether a file may be shown; the name is seen from the folder that is searched."""
        folder, slash, _ = name.rpartition("/")
        if self._target.readable or not slash:
            return True
        found = self._folders.get(folder)
        if found is None:
            found = self._folders[folder] = await self._judged(name)
            self.unshown += not found
        return found

    async def _judged(self, name: str) -> bool:
        file = self._filesystem.below(self._target, name)
        if self._filesystem.holds(file.real):
            return True
        if self._consented is None:
            # The search was allowed, be it by a rule or by the user's answer to just that question.
            self._consented = await self._verdict(self._target)
        return await self._verdict(file) in {"allow", self._consented}

    async def _verdict(self, target: Resolved) -> str:
        patterns = access.outside_patterns(self._filesystem, target)
        return await self._context.verdict("external_directory", patterns)
