"""Skills as the model is told of them: where they lie, whose count, and what an agent may use."""

from pathlib import Path

import pytest

from holdfast.context.source import ABSENT, ContextSource
from holdfast.context.sources import skills as subject
from holdfast.context.sources.skills import SkillSeen
from holdfast.location.skills import Skill
from tests.config.world import write
from tests.context.sources.world import SourceWorld, Told


def put(folder: Path, name: str, description: str = "helps") -> Path:
    return write(folder / name / "SKILL.md", f"---\nname: {name}\ndescription: {description}\n---\nBody.\n")


def found(world: SourceWorld) -> list[Skill]:
    world.warnings.clear()
    return list(subject.finder(world.places, world.loaded(), world.trusted)(world.warnings))


def locations(world: SourceWorld) -> dict[str, Path]:
    return {skill.name: skill.location for skill in found(world)}


def source(world: SourceWorld, *denied: str) -> ContextSource[tuple[SkillSeen, ...]]:
    find = subject.finder(world.places, world.loaded(), world.trusted)
    return subject.skills(find, allowed=lambda name: name not in denied, warn=world.warnings.append)


def test_a_project_that_nobody_trusts_brings_none(world: SourceWorld) -> None:
    """Each folder that is left out is named, with what would make it count."""
    mine = put(world.home / ".claude/skills", "mine")
    put(world.project / ".claude/skills", "a")
    put(world.project / ".opencode/skill", "b")
    put(world.sub / ".holdfast/skills", "c")

    assert locations(world) == {"mine": mine}
    assert world.warnings == [
        f"{folder} is not trusted, so the skills in {path} are left out; "
        f"`holdfast trust {folder}` makes them count"
        for folder, path in (
            (world.project, world.project / ".claude/skills"),
            (world.project, world.project / ".opencode/skill"),
            (world.sub, world.sub / ".holdfast/skills"),
        )
    ]


def test_a_person_cannot_be_made_to_name_a_stranger(world: SourceWorld) -> None:
    """A path of the person's settings that leads into a project which nobody trusts needs trust too."""
    inside = put(world.project / "shared", "inside")
    outside = put(world.outside / "shared", "outside")
    named = [str(world.project / "shared"), str(world.outside / "shared"), "/nowhere"]
    write(world.ours / "holdfast.json", {"skills": {"paths": named}})

    assert locations(world) == {"outside": outside}
    left_out = f"{world.project} is not trusted, so the skills in {world.project}/shared are left out"
    assert world.warnings == [
        f"{left_out}; `holdfast trust {world.project}` makes them count",
        "the settings look for skills in /nowhere, which is no folder",
    ]
    world.trust = True
    assert locations(world) == {"inside": inside, "outside": outside}


def test_where_skills_lie(world: SourceWorld) -> None:
    """Every folder that people use, of the person and, trusted, from the top of the worktree down."""
    world.trust = True
    folders = [
        world.home / ".claude/skills",
        world.home / ".agents/skills",
        world.opencode / "skill",
        world.ours / "skills",
        world.project / ".claude/skills",
        world.sub / ".agents/skills",
        world.project / ".opencode/skills",
        world.sub / ".holdfast/skill",
        world.project / "tools/skills",
        world.home / "more",
    ]
    expected = {f"s{number}": put(folder, f"s{number}") for number, folder in enumerate(folders)}
    write(world.project / "holdfast.json", {"skills": {"paths": ["tools/skills", "~/more"]}})
    put(world.sub / "below/.claude/skills", "below")

    assert locations(world) == expected
    assert world.warnings == []


def test_the_nearer_one_counts(world: SourceWorld) -> None:
    """The project's before the person's, the directory's before the top's, what is named before all."""
    world.trust = True
    write(world.project / "holdfast.json", {"skills": {"paths": ["named"]}})
    (world.project / "named").mkdir()
    folders = [
        world.home / ".claude/skills",
        world.opencode / "skills",
        world.ours / "skills",
        world.project / ".claude/skills",
        world.sub / ".claude/skills",
        world.project / ".opencode/skills",
        world.sub / ".holdfast/skills",
        world.project / "named",
    ]
    for folder in folders:
        path = put(folder, "one")
        assert locations(world) == {"one": path}


def test_the_project_can_be_switched_off(world: SourceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the person's are left, trusted or not."""
    world.trust = True
    monkeypatch.setenv("HOLDFAST_DISABLE_PROJECT_CONFIG", "1")
    put(world.project / ".claude/skills", "a")
    put(world.project / ".holdfast/skills", "b")
    mine = put(world.ours / "skills", "mine")

    assert locations(world) == {"mine": mine}
    assert world.warnings == []


def test_addresses_of_skills_are_not_fetched(world: SourceWorld) -> None:
    """The person is told, since the setting looks as if it did something."""
    write(world.ours / "holdfast.json", {"skills": {"urls": ["https://a.example/"]}})

    assert found(world) == []
    assert world.warnings == ["the settings name addresses of skills; only folders are looked in"]


async def test_only_what_is_permitted_is_told(world: SourceWorld) -> None:
    """By name; one without a description is there for those who name it, and not listed."""
    for name in ("b", "a", "secret"):
        put(world.ours / "skills", name, f"helps with {name}")
    write(world.ours / "skills/quiet/SKILL.md", "---\nname: quiet\n---\n")

    assert await source(world, "secret").load() == (
        SkillSeen("a", "helps with a"),
        SkillSeen("b", "helps with b"),
    )
    assert await source(world, "a", "b", "secret").load() is ABSENT


async def test_how_skills_are_told(world: SourceWorld, told: Told) -> None:
    """Names and descriptions, no place and no body; a change tells the whole list, and an end the end."""
    put(world.ours / "skills", "one", "does one thing")

    assert await told.hear(source(world)) == (
        "Skills are instructions for particular kinds of work. When one fits what you are about to do, load "
        "it with the skill tool, by its name, before you begin.\n"
        "<available_skills>\n- one: does one thing\n</available_skills>"
    )
    assert await told.hear(source(world)) is None
    put(world.ours / "skills", "two", "does another")
    assert await told.hear(source(world)) == (
        "The skills have changed. This list supersedes the one that you were given before.\n"
        "<available_skills>\n- one: does one thing\n- two: does another\n</available_skills>"
    )
    assert await told.hear(source(world, "one", "two")) == (
        "The skills that you were told of are no longer available; do not try to load them."
    )
    assert world.warnings == []


async def test_very_many_skills_are_bounded(world: SourceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first by name are listed."""
    monkeypatch.setattr(subject, "LISTED_MAX", 1)
    for name in ("b", "a"):
        put(world.ours / "skills", name)

    assert await source(world).load() == (SkillSeen("a", "helps"),)
    assert world.warnings == ["there are 2 skills; those after 1 are not listed to the model"]
