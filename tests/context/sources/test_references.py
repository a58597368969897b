"""References: folders that the person's settings name, told with where they lie."""

from typing import Any

import pytest

from holdfast.context.source import ABSENT, ContextSource
from holdfast.context.sources import references as subject
from holdfast.context.sources.references import Reference
from tests.config.world import write
from tests.context.sources.world import SourceWorld, Told


def source(world: SourceWorld) -> ContextSource[tuple[Reference, ...]]:
    world.warnings.clear()
    return subject.references(subject.finder(world.places, world.loaded()), warn=world.warnings.append)


@pytest.mark.parametrize(
    "entry", ["./nowhere", "owner/repo", "", {"repository": "https://a.example/x"}, {"path": 3}, {}, "a\0b"]
)
async def test_what_is_no_folder_is_named(world: SourceWorld, entry: Any) -> None:
    """It is left out, and the others count."""
    write(world.ours / "holdfast.json", {"references": {"bad": entry, "good": str(world.outside)}})

    assert await source(world).load() == (Reference("good", str(world.outside)),)
    assert world.warnings == ["reference 'bad' is left out: it names no folder of this machine"]


async def test_a_stranger_names_none(world: SourceWorld) -> None:
    """Settings of a project that nobody trusts add nothing."""
    write(world.project / "holdfast.json", {"references": {"x": str(world.outside)}})

    assert await source(world).load() is ABSENT
    world.trust = True
    assert await source(world).load() == (Reference("x", str(world.outside)),)


async def test_where_paths_begin(world: SourceWorld) -> None:
    """Beside the settings that name them, at home, or where they say."""
    world.trust = True
    for folder in (world.project / "docs", world.home / "notes", world.ours / "mine"):
        folder.mkdir()
    write(world.project / "holdfast.json", {"references": {"b": "docs", "a": {"path": "~/notes"}}})
    write(world.ours / "holdfast.json", {"references": {"c": {"path": "./mine", "description": "M"}}})

    assert await source(world).load() == (
        Reference("a", str(world.home / "notes")),
        Reference("b", str(world.project / "docs")),
        Reference("c", str(world.ours / "mine"), "M"),
    )
    assert world.warnings == []


async def test_how_references_are_told(world: SourceWorld, told: Told) -> None:
    """Name, place and what is in it, a line each."""
    path = str(world.outside)
    write(world.ours / "holdfast.json", {"references": {"x": {"path": path, "description": "the\nlibrary"}}})

    assert await told.hear(source(world)) == (
        "These folders are there for you to look things up in. Read them where they help.\n"
        f"<available_references>\n- x: {path} (the library)\n</available_references>"
    )
    write(world.ours / "holdfast.json", {"references": {"y": path}})
    assert await told.hear(source(world)) == (
        "The reference folders have changed. This list supersedes the one that you were given before.\n"
        f"<available_references>\n- y: {path}\n</available_references>"
    )
    world.outside.rmdir()
    assert await told.hear(source(world)) == (
        "The reference folders that you were told of are no longer available."
    )
