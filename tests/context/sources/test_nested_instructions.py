"""Nested instructions: one source a file, under a key that gives the file back."""

import os
from pathlib import Path
from urllib.parse import unquote

import pytest

from holdfast.context import keys
from holdfast.context.source import ABSENT, UNAVAILABLE
from holdfast.context.sources import instructions, nested_instructions
from holdfast.context.sources.instruction_text import InstructionText
from holdfast.context.sources.nested_instructions import key_of, nested, paths_in
from holdfast.location import instruction_files
from tests.config.world import write
from tests.context.sources.world import SourceWorld, Told


@pytest.mark.parametrize(
    "name", ["src/AGENTS.md", "My docs/ä/CLAUDE.md", "100%/AGENTS.md", "a%2Fb/x", "new\nline/x", "\u2028/y"]
)
def test_a_key_gives_its_file_back(name: str) -> None:
    """Whatever a folder is called, its key is one, and tells the path again."""
    top = Path("/project")
    key = key_of(top / name, top)

    assert keys.check(key) == key
    assert unquote(key.removeprefix(nested_instructions.PREFIX)) == name


def test_a_plain_path_is_its_key() -> None:
    """People can read it."""
    assert key_of(Path("/p/src/api/AGENTS.md"), Path("/p")) == "core/instructions/nested/src/api/AGENTS.md"


async def test_how_a_file_is_told(world: SourceWorld, told: Told) -> None:
    """Each by itself: a change of one says nothing of the other."""
    one = write(world.sub / "a/AGENTS.md", "one")
    two = write(world.sub / "b/AGENTS.md", "two")

    async def hear() -> str | None:
        found = nested([two, one], worktree=world.project, warn=world.warnings.append)
        return await told.hear(*found)

    assert await hear() == (
        f"These instructions are for files in {one.parent} and below it.\n\n"
        f"Instructions from: {one}\none\n\n"
        f"These instructions are for files in {two.parent} and below it.\n\n"
        f"Instructions from: {two}\ntwo"
    )
    assert await hear() is None
    one.write_text("changed")
    two.unlink()
    assert await hear() == (
        f"The instructions for files in {one.parent} and below it have changed. "
        f"These supersede what this file said before.\n\nInstructions from: {one}\nchanged\n\n"
        f"The instructions from {two} no longer apply."
    )
    assert world.warnings == []


async def test_a_new_file_is_told_at_the_next_boundary(world: SourceWorld, told: Told) -> None:
    """Within an epoch, without a new baseline."""
    path = write(world.sub / "a/AGENTS.md", "one")
    await told.hear()

    assert await told.hear(*nested([path], worktree=world.project, warn=pytest.fail)) == (
        f"These instructions are for files in {path.parent} and below it.\n\nInstructions from: {path}\none"
    )
    assert told.snapshot is not None
    assert paths_in(told.snapshot) == [path]


async def test_everything_told_is_known(world: SourceWorld, told: Told) -> None:
    """The standing files and the nested ones, for whoever looks beside the next file; nonsense is none."""
    top = write(world.project / "AGENTS.md", "top")
    path = write(world.sub / "a/AGENTS.md", "one")
    standing = instructions.instructions(world.places, (), trusted=world.trusted, warn=pytest.fail)
    await told.hear(standing, *nested([path], worktree=world.project, warn=pytest.fail))

    assert told.snapshot is not None
    assert paths_in(told.snapshot) == [top, path]
    strange = {"core/instructions": 3, key_of(path, world.project): [1], "core/date": "2026-01-01"}
    changed = told.snapshot.readable({key: {"value": value} for key, value in strange.items()})
    assert paths_in(changed) == []


async def test_a_file_leads_nowhere(world: SourceWorld) -> None:
    """One that leads out by now is gone, whatever it was when it was found; so is a pipe or an empty one."""
    path = world.sub / "AGENTS.md"
    (source,) = nested([path], worktree=world.project, warn=world.warnings.append)
    path.symlink_to(write(world.outside / "secret.md", "secret"))
    assert await source.load() is ABSENT
    path.unlink()
    os.mkfifo(path)
    assert await source.load() is ABSENT
    path.unlink()
    path.write_text("")
    assert await source.load() is ABSENT
    assert world.warnings == []


async def test_a_link_that_is_planted_late(world: SourceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be opened where it was judged is unavailable, and what was told stays."""
    path = world.sub / "AGENTS.md"
    path.symlink_to(write(world.outside / "secret.md", "secret"))
    monkeypatch.setattr(instruction_files, "leads_into", lambda *_: True)
    (source,) = nested([path], worktree=world.project, warn=world.warnings.append)

    assert await source.load() is UNAVAILABLE
    (warning,) = world.warnings
    assert warning.startswith(f"the instructions in {path} cannot be looked at now")


async def test_nothing_outside_has_a_source(world: SourceWorld) -> None:
    """Nor a name that cannot be recorded."""
    given = [world.outside / "AGENTS.md", world.sub / "../../outside/AGENTS.md", Path("/p/\udcff/AGENTS.md")]

    assert nested(given, worktree=world.project, warn=pytest.fail) == []


async def test_the_project_can_be_switched_off(world: SourceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found before the flag was set has no source any more."""
    path = write(world.sub / "AGENTS.md", "one")
    monkeypatch.setenv("OPENCODE_DISABLE_PROJECT_CONFIG", "1")

    assert nested([path], worktree=world.project, warn=pytest.fail) == []


async def test_size_and_number_are_bounded(world: SourceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that were met first count, and a long one is cut."""
    monkeypatch.setattr(nested_instructions, "FILES_MAX", 1)
    paths = [write(world.sub / name / "AGENTS.md", "x" * 20_000) for name in ("z", "a")]
    (source,) = nested(paths, worktree=world.project, warn=world.warnings.append)

    assert await source.load() == InstructionText(
        str(paths[0]), "x" * 16_384 + "\n[Cut here: the first 16,384 of 20,000 bytes are shown.]"
    )
    assert world.warnings == ["2 nested instruction files were met; those after 1 are left out"]
