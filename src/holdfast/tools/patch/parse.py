"""Reads a patch. An error names the line of the patch and what would be right there."""

import re

from holdfast.errors import InvalidInput
from holdfast.tools.patch.section import AddFile, DeleteFile, Hunk, Section, Sign, UpdateFile

BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, DELETE, UPDATE, MOVE = "*** Add File:", "*** Delete File:", "*** Update File:", "*** Move to:"
END_OF_FILE = "*** End of File"
# An empty line is an unchanged one whose blank was lost.
_SIGNS: dict[str, Sign] = {"": " ", " ": " ", "-": "-", "+": "+"}
_HEREDOC = re.compile(r"\A\s*(?:cat\s+)?<<-?\s*(['\"]?)(\w+)\1\n(.*)\n\2\s*\Z", re.DOTALL)


def parse(text: str) -> list[Section]:
    """The sections of a patch, in order; at least one."""
    heredoc = _HEREDOC.match(text)
    lines = (heredoc[3] if heredoc else text).strip().split("\n")
    if lines[0].strip() != BEGIN:
        raise InvalidInput(f"line 1 of the patch is {_shown(lines[0])}; a patch begins with {BEGIN!r}")
    if lines[-1].strip() != END:
        raise InvalidInput(f"the last line of the patch is {_shown(lines[-1])}; a patch ends with {END!r}")
    reading = _Lines(lines[1:-1])
    sections: list[Section] = []
    while (line := reading.peek()) is not None:
        if not line.strip():
            reading.take()
            continue
        sections.append(_section(reading))
    if not sections:
        raise InvalidInput("the patch has no section; begin one with '*** Update File: path' or the like")
    return sections


class _Lines:
    """The lines between the first and the last, with their numbers in the patch."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._filled = 0

    @property
    def number(self) -> int:
        """Of the next line, from 1, the first of the patch included."""
        return self._at + 2

    def peek(self) -> str | None:
        return self._lines[self._at].removesuffix("\r") if self._at < len(self._lines) else None

    def peek_filled(self) -> str | None:
        """The next line that is not blank; each line is looked at once for it."""
        self._filled = max(self._filled, self._at)
        while self._filled < len(self._lines) and not self._lines[self._filled].strip():
            self._filled += 1
        return self._lines[self._filled] if self._filled < len(self._lines) else None

    def take(self) -> str:
        line = self.peek()
        assert line is not None
        self._at += 1
        return line


def _section(reading: _Lines) -> Section:
    number, line = reading.number, reading.take()
    if line.startswith(ADD):
        return AddFile(_path(line, ADD, number), _added(reading))
    if line.startswith(DELETE):
        return DeleteFile(_path(line, DELETE, number))
    if line.startswith(UPDATE):
        path = _path(line, UPDATE, number)
        move = None
        following = reading.peek()
        if following is not None and following.startswith(MOVE):
            move = _path(reading.take(), MOVE, reading.number - 1)
        hunks = _hunks(reading)
        if not hunks and move is None:
            raise InvalidInput(f"line {number} of the patch: the update of {path} changes nothing")
        return UpdateFile(path, move, tuple(hunks))
    raise InvalidInput(
        f"line {number} of the patch is {_shown(line)}; "
        f"expected {ADD!r}, {UPDATE!r} or {DELETE!r} with a path"
    )


def _path(line: str, head: str, number: int) -> str:
    path = line[len(head) :].strip()
    if not path:
        raise InvalidInput(f"line {number} of the patch: {head!r} names no path")
    return path


def _added(reading: _Lines) -> str:
    lines = []
    while (line := reading.peek()) is not None and line.startswith("+"):
        lines.append(reading.take()[1:])
    return "".join(f"{line}\n" for line in lines)


def _hunks(reading: _Lines) -> list[Hunk]:
    hunks = []
    while (line := reading.peek()) is not None and not _begins_section(line):
        if not line.strip() and _ends_here(reading):
            reading.take()
            continue
        hunks.append(_hunk(reading))
    return hunks


def _begins_section(line: str) -> bool:
    return line.startswith((ADD, DELETE, UPDATE))


def _ends_here(reading: _Lines) -> bool:
    """Whether only blank lines follow in this section."""
    line = reading.peek_filled()
    return line is None or _begins_section(line)


def _hunk(reading: _Lines) -> Hunk:
    number, context = reading.number, None
    line = reading.peek()
    if line is not None and line.startswith("@@"):
        context = reading.take()[2:].strip() or None
    found: list[tuple[Sign, str]] = []
    at_end = False
    while (line := reading.peek()) is not None and not line.startswith("@@") and not _begins_section(line):
        if line.strip() == END_OF_FILE:
            reading.take()
            at_end = True
            break
        if not line.strip() and _ends_here(reading):
            break
        sign = _SIGNS.get(line[:1])
        if sign is None:
            raise InvalidInput(
                f"line {reading.number} of the patch is {_shown(line)}; inside a hunk a line begins with a "
                "blank (unchanged), '-' (removed) or '+' (added)"
            )
        found.append((sign, reading.take()[1:]))
    if not found:
        raise InvalidInput(f"line {number} of the patch: the hunk has no lines")
    return Hunk(line=number, context=context, lines=tuple(found), at_end=at_end)


def _shown(line: str) -> str:
    return ascii(line[:80])
