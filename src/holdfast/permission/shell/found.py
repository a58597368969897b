"""What a walk over a command has found so far, and the folders that it may be in."""

from typing import Final

from holdfast.permission.shell import programs
from holdfast.permission.shell.reading import Pattern
from holdfast.permission.shell.syntax import NotUnderstood
from holdfast.permission.shell.word import ANY, HOME

PATTERNS_MAX: Final = 200
PATHS_MAX: Final = 400
FOLDERS_MAX: Final = 16


class Found:
    """Collects. `folders` are all those in which a command may run, None when that is not known."""

    def __init__(self, directory: str, home: str) -> None:
        self._home = home
        self.patterns: list[Pattern] = []
        self.touched: list[str] = []
        self.mentioned: list[str] = []
        self.unclear: str | None = None
        self.paths_unclear: str | None = None
        self.folders: list[str] | None = [directory]

    def pattern(self, pattern: Pattern) -> None:
        """Something that the command does."""
        if len(self.patterns) >= PATTERNS_MAX:
            raise NotUnderstood(f"it does more than {PATTERNS_MAX} things")
        self.patterns.append(pattern)

    def touch(self, text: str | None, source: str) -> None:
        """A path that is used; `text` is None where it is known only at run time."""
        if text is None:
            self.paths_unclear = f"{source[:80]} is known only when it runs"
            return
        self.touched += self._paths(text, source)

    def mention(self, text: str) -> None:
        """An argument that may be a path: one that leads out of the folder where it runs."""
        for value in dict.fromkeys((text, text.partition("=")[2], text[2:] if text[:1] == "-" else text)):
            if value.startswith(HOME) and value[1:2] not in ("", "/"):
                self.touch(value, "~" + value[1:])
            elif value.startswith(("/", HOME)) or ".." in value.split("/"):
                before = self.paths_unclear
                self.mentioned += self._paths(value, value)
                self.paths_unclear = before

    def go(self, text: str | None, source: str, *, again: bool) -> None:
        """The command may be in another folder from here on. `again`: the line may run several times."""
        if text is None or (again and not text.startswith(("/", HOME))):
            self.folders = None
            if text is None:
                self.touch(None, source)
            return
        reached = self._paths(text, source)
        self.touched += reached
        if self.folders is not None:
            self.folders = list(dict.fromkeys((*self.folders, *reached)))
            self.folders = None if len(self.folders) > FOLDERS_MAX or ANY in text else self.folders

    def _paths(self, text: str, source: str) -> list[str]:
        if text.startswith(HOME):
            if text[1:2] not in ("", "/"):
                self.paths_unclear = f"{source[:80]} is known only when it runs"
                return []
            text = self._home + text[1:]
        if ANY in text:
            before, _, after = text.partition(ANY)
            if ".." in after.split("/"):
                self.paths_unclear = f"{source[:80]} leads up from a wildcard"
            text = before.rpartition("/")[0] or ("/" if before.startswith("/") else ".")
        if text in programs.DEVICES or text.startswith("/dev/fd/"):
            return []
        if text.startswith(("/dev/tcp/", "/dev/udp/")):
            raise NotUnderstood("it opens a connection")
        if len(self.touched) + len(self.mentioned) > PATHS_MAX:
            raise NotUnderstood(f"it names more than {PATHS_MAX} paths")
        if text.startswith("/"):
            return [text]
        if self.folders is None:
            self.paths_unclear = f"the folder in which it uses {source[:80]} is not known"
            return []
        return [f"{folder}/{text}" for folder in self.folders]
