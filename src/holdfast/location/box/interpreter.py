"""How the launcher is started: a bare interpreter on compiled code, since every command waits for it."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
SOURCE: Final = Path(__file__).parent / "launcher" / "launch.py"


def command(python: tuple[str, ...] = ()) -> list[str]:
    """The interpreter, its options and the launcher. `python`: another interpreter of the same version."""
    # Inside a virtual environment another name for the interpreter below it, which starts sooner.
    own = (sys._base_executable or sys.executable,)  # type: ignore[attr-defined] # noqa: SLF001
    return [*(python or own), "-I", "-S", "-X", "utf8", str(_compiled()), str(ROOT)]


def _compiled() -> Path:
    """The launcher's bytecode, compiled from the source as it is now; where that cannot be, the source."""
    cached = Path(importlib.util.cache_from_source(str(SOURCE)))
    if _is_current(cached):
        return cached
    import py_compile

    try:
        py_compile.compile(str(SOURCE), doraise=True)
    except (OSError, py_compile.PyCompileError):
        return SOURCE
    return cached if _is_current(cached) else SOURCE


def _is_current(cached: Path) -> bool:
    """Whether the file begins as the import system would accept it: an interpreter that is given bytecode by
    name does not look at the source.
    """
    try:
        source = SOURCE.stat()
        with cached.open("rb") as file:
            head = file.read(16)
    except OSError:
        return False
    stamp = int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF
    wanted = importlib.util.MAGIC_NUMBER + bytes(4) + b"".join(part.to_bytes(4, "little") for part in stamp)
    return head == wanted


def encoded(path: str) -> str:
    """A path as the launcher reads it, whose interpreter always takes names for UTF-8."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")
