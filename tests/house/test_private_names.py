"""Which private names of a dependency the house touches: each is listed, pinned by the lock, and tested."""

import ast
import asyncio
from pathlib import Path

import anyio

from tests.house.parsing import parsed

SRC = Path(__file__).parents[2] / "src" / "holdfast"
LISTED = {("runtime/calls/tool_calls.py", "_cancel_handle")}
"""`test_a_tool_that_swallows_its_cancellation_is_told_no_more` shows what it is for."""


def private_names(text: str) -> set[str]:
    """The private names that a file reaches by their text; ruff's SLF001 sees the others."""
    calls = (each for each in ast.walk(parsed(text)) if isinstance(each, ast.Call))
    named = (
        call.args[1]
        for call in calls
        if ast.unparse(call.func) in ("getattr", "setattr", "hasattr", "delattr")
        and len(call.args) > 1
        and ast.unparse(call.args[0]) != "self"
    )
    texts = (each.value for each in named if isinstance(each, ast.Constant) and isinstance(each.value, str))
    return {each for each in texts if each.startswith("_") and not each.startswith("__")}


def test_the_list_is_whole() -> None:
    """No file reaches a private name that is not listed, and no listed one is forgotten."""
    found = {
        (str(path.relative_to(SRC)), name)
        for path in SRC.rglob("*.py")
        if "attr(" in (text := path.read_text(encoding="utf-8"))
        for name in private_names(text)
    }

    assert found == LISTED


async def test_a_cancelled_scope_has_the_handle_that_is_listed() -> None:
    """While a task in it has not ended; a version of anyio without it must be noticed here."""
    scope, inside = anyio.CancelScope(), asyncio.Event()

    async def stubborn() -> None:
        with scope:
            inside.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                handles.append(scope._cancel_handle)  # type: ignore[attr-defined]
                raise

    handles: list[object] = []
    task = asyncio.create_task(stubborn())
    await inside.wait()
    scope.cancel()
    await asyncio.wait({task})

    assert [type(each) for each in handles] == [asyncio.Handle]
