"""Standing instructions: their order, each file once, what a stranger may not do, how changes are told."""

import errno
import os
from pathlib import Path

import pytest

from holdfast.context.source import ABSENT, UNAVAILABLE, ContextSource, Missing
from holdfast.context.sources import instructions as subject
from holdfast.context.sources.instruction_text import Instructions, InstructionText
from holdfast.location import instruction_files
from tests.config.world import write
from tests.context.sources.world import SourceWorld, Told

INTRODUCTION = "Standing instructions for this work follow. Where two disagree, the later one counts."
FLAG = "HOLDFAST_DISABLE_PROJECT_CONFIG"


def source(world: SourceWorld) -> ContextSource[Instructions]:
    world.warnings.clear()
    return subject.instructions(
        world.places, world.loaded().instructions, trusted=world.trusted, warn=world.warnings.append
    )


async def paths(world: SourceWorld) -> list[Path]:
    """What is told, by path."""
    found = await source(world).load()
    assert not isinstance(found, Missing) or found is ABSENT, found
    return [] if found is ABSENT else [Path(each.path) for each in found]


async def test_a_file_that_vanishes_leaves_everything_in_force(
    world: SourceWorld, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gone between the look and the reading: nothing is known, so nothing is said; the next look tells."""
    path = write(world.project / "AGENTS.md", "one")
    await told.hear(source(world))
    read = instruction_files.read

    def vanishing(path: Path, **given: object) -> instruction_files.Excerpt:
        path.unlink()
        return read(path, **given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(instruction_files, "read", vanishing)
        assert await source(world).load() is UNAVAILABLE
    assert world.warnings == [
        f"the instruction files cannot be looked at now, and stay as they were: {path} does not exist"
    ]
    assert await told.hear(source(world)) == (
        "The standing instructions that you were given before no longer apply; there are none now."
    )


async def test_a_failing_disk_leaves_everything_in_force(
    world: SourceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the system is no absence either."""

    def fails(path: Path) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(instruction_files, "is_file", fails)

    assert await source(world).load() is UNAVAILABLE
    assert world.warnings == [
        "the instruction files cannot be looked at now, and stay as they were: Input/output error"
    ]


async def test_without_files_there_is_nothing(world: SourceWorld) -> None:
    """No file, or only empty ones: absent, which is not unavailable."""
    assert await source(world).load() is ABSENT
    write(world.project / "AGENTS.md", " \n")
    assert await source(world).load() is ABSENT
    assert world.warnings == []


async def test_the_order(world: SourceWorld) -> None:
    """The person's, then from the top down to the directory one a folder, then what the settings name."""
    expected = [
        write(world.ours / "AGENTS.md", "ours"),
        write(world.project / "AGENTS.md", "top"),
        write(world.sub / "CLAUDE.md", "sub"),
        write(world.home / "notes/me.md", "me"),
        write(world.sub / "docs/b.md", "b"),
        write(world.project / "docs/a.md", "a"),
    ]
    write(world.opencode / "AGENTS.md", "theirs")
    write(world.home / ".claude/CLAUDE.md", "claude")
    write(world.project / "CLAUDE.md", "not the first of its folder")
    write(world.sub / "deeper/AGENTS.md", "below the directory")
    write(world.ours / "holdfast.json", {"instructions": ["~/notes/*.md", "docs/*.md", "AGENTS.md"]})

    assert await paths(world) == expected
    assert world.warnings == []


async def test_each_file_once_by_its_real_path(world: SourceWorld) -> None:
    """A link to a file that is told already adds nothing."""
    top = write(world.project / "AGENTS.md", "top")
    (world.sub / "AGENTS.md").symlink_to(top)
    (world.project / "CLAUDE.md").symlink_to(top)
    write(world.ours / "holdfast.json", {"instructions": ["CLAUDE.md", str(top)]})

    assert await paths(world) == [top]


async def test_how_it_is_told(world: SourceWorld, told: Told) -> None:
    """Each text under its path; a change tells the whole set, and that it takes the place of the old one."""
    top = write(world.project / "AGENTS.md", "Use tabs.\n")
    sub = write(world.sub / "AGENTS.md", "Use spaces.\n")

    assert await told.hear(source(world)) == (
        f"{INTRODUCTION}\n\nInstructions from: {top}\nUse tabs.\n\nInstructions from: {sub}\nUse spaces."
    )
    assert await told.hear(source(world)) is None
    sub.write_text("Use both.")
    assert await told.hear(source(world)) == (
        "The standing instructions have changed. What follows is all of them as they are now; it supersedes "
        "every standing instruction that you were given before.\n\n"
        f"Instructions from: {top}\nUse tabs.\n\nInstructions from: {sub}\nUse both."
    )
    top.unlink()
    sub.unlink()
    assert await told.hear(source(world)) == (
        "The standing instructions that you were given before no longer apply; there are none now."
    )


async def test_the_deprecated_name_is_told(world: SourceWorld) -> None:
    """CONTEXT.md counts where nothing else does, with a warning."""
    path = write(world.project / "CONTEXT.md", "old")

    assert await paths(world) == [path]
    assert world.warnings == [
        f"{path} counts as instructions, but its name is deprecated; rename it to AGENTS.md"
    ]


@pytest.mark.parametrize("name", [FLAG, "OPENCODE_DISABLE_PROJECT_CONFIG"])
async def test_the_project_can_be_switched_off(
    world: SourceWorld, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Only the person's files are left; relative names of theirs lie beside their settings."""
    monkeypatch.setenv(name, "true")
    world.trust = True
    write(world.project / "AGENTS.md", "top")
    write(world.project / "docs/a.md", "a")
    write(world.project / "holdfast.json", {"instructions": ["docs/a.md"]})
    mine = write(world.ours / "AGENTS.md", "mine")
    beside = write(world.ours / "docs/a.md", "mine too")
    absolute = write(world.outside / "x.md", "x")
    write(world.ours / "holdfast.json", {"instructions": ["docs/a.md", str(absolute)]})

    assert await paths(world) == [mine, beside, absolute]


async def test_settings_in_the_environment_do_not_switch_it_on_again(
    world: SourceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative name that would lie in the project is left out with the rest of it."""
    monkeypatch.setenv(FLAG, "1")
    monkeypatch.setenv("HOLDFAST_CONFIG_CONTENT", '{"instructions": ["x.md"]}')
    write(world.sub / "x.md", "x")

    assert await paths(world) == []


class Planted:
    """A repository that would like the person's secret told to the model."""

    def __init__(self, world: SourceWorld) -> None:
        self.secret = write(world.outside / "secret.md", "secret")
        (world.project / "AGENTS.md").symlink_to(self.secret)
        (world.sub / "rules").symlink_to(world.outside)
        (world.sub / "named.md").symlink_to(self.secret)
        write(world.project / "holdfast.json", {"instructions": ["named.md", "rules/*.md", "n*.md"]})
        write(world.ours / "holdfast.json", {"instructions": ["named.md", "rules/secret.md"]})
        self.other = write(world.project / "CLAUDE.md", "harmless")


async def test_a_stranger_leads_nowhere(world: SourceWorld) -> None:
    """Files that lead out are left out and named, whoever named them; the next one in the folder counts."""
    planted = Planted(world)

    assert await paths(world) == [planted.other]
    assert world.warnings == [
        f"{path} leads out of a project that is not trusted; it is left out"
        for path in (world.project / "AGENTS.md", world.sub / "named.md", world.sub / "rules/secret.md")
    ]


async def test_trust_opens_links(world: SourceWorld) -> None:
    """A person who trusts the project keeps their files where they like, each told once."""
    Planted(world)
    world.trust = True

    assert await paths(world) == [world.project / "AGENTS.md"]
    assert world.warnings == []


async def test_a_link_that_is_planted_late(world: SourceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between judging and opening: the file is judged again when it is opened."""
    path = write(world.project / "AGENTS.md", "harmless")
    secret = write(world.outside / "secret.md", "secret")
    find = subject.find

    def planting(*given: object) -> list[subject.Found]:
        found = find(*given)  # type: ignore[arg-type]
        path.unlink()
        path.symlink_to(secret)
        return found

    monkeypatch.setattr(subject, "find", planting)

    assert await source(world).load() is UNAVAILABLE


async def test_a_stranger_does_not_block(world: SourceWorld) -> None:
    """A pipe, and a name that cannot be recorded, are passed over."""
    os.mkfifo(world.project / "AGENTS.md")
    name = os.fsencode(world.sub) + b"/\xff.md"
    Path(os.fsdecode(name)).write_text("x")
    good = write(world.sub / "good.md", "good")
    write(world.project / "holdfast.json", {"instructions": ["*.md"]})

    assert await paths(world) == [good]
    (warning,) = world.warnings
    assert warning == f"the name of {world.sub}/\ufffd.md is not UTF-8; the file is left out"


async def test_long_files_are_cut(world: SourceWorld) -> None:
    """One file has its bound, and all of them together; each cut says what is shown."""
    for number in range(6):
        write(world.sub / f"{number}.md", f"{number}" * 70_000)
    write(world.ours / "holdfast.json", {"instructions": ["[0-9].md"]})
    found = await source(world).load()

    def cut(number: int, shown: int) -> InstructionText:
        note = f"[Cut here: the first {shown:,} of 70,000 bytes are shown.]"
        text = f"{number}" * shown
        return InstructionText(str(world.sub / f"{number}.md"), f"{text}\n{note}".lstrip())

    assert found == (*(cut(number, 65_536) for number in range(4)), cut(4, 0), cut(5, 0))


async def test_very_many_files_are_bounded(world: SourceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first count."""
    monkeypatch.setattr(subject, "FILES_MAX", 2)
    for number in range(4):
        write(world.sub / f"{number}.md", "x")
    write(world.ours / "holdfast.json", {"instructions": ["*.md"]})

    assert await paths(world) == [world.sub / "0.md", world.sub / "1.md"]
    assert world.warnings == ["there are 4 instruction files; those after 2 are left out"]
