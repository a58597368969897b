"""Reads Python files as trees."""

import ast
import gc
from pathlib import Path


def parsed(source: Path | str) -> ast.Module:
    """The tree of a file, or of a text. CPython 3.11 fails when the garbage collector runs meanwhile
    (`SystemError: AST constructor recursion depth mismatch`).
    """
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.enable()
