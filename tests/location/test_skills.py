"""Skills: found in folders, within bounds; what is no skill is named; the nearer one counts."""

import os
from pathlib import Path

import pytest

from holdfast.config.documents import markdown
from holdfast.location import skills
from holdfast.location.skills import Skill


class World:
    """A folder of skills, and whatever was said about it."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.problems: list[str] = []

    def put(self, folder: str, head: str, body: str = "Body.") -> Path:
        path = self.top / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\n{head}\n---\n{body}\n", encoding="utf-8")
        return path

    def found(self, *folders: str) -> list[Skill]:
        self.problems.clear()
        tops = [self.top / folder for folder in folders or (".",)]
        return skills.discover(tops, split=markdown.split, problems=self.problems)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path.resolve())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no head at all", "its front matter has no name"),
        ("---\ndescription: x\n---\n", "its front matter has no name"),
        ("---\nname: 3\n---\n", "its front matter has no name"),
        ("---\nname: ''\n---\n", "its front matter has no name"),
        ("---\nname: 'a*'\n---\n", "its name has signs"),
        ("---\nname: '</x>'\n---\n", "its name has signs"),
        (f"---\nname: {'a' * 65}\n---\n", "its name has signs"),
        ("---\nname: a\ndescription: [x]\n---\n", "its description is no text"),
        ("---\nname: a\n\t{\n---\n", "its front matter is not YAML"),
        ("---\nname: &a x\ndescription: *a\n---\n", "aliases"),
        ("---\n- a\n---\n", "no list of keys"),
    ],
)
def test_what_is_no_skill_is_named(world: World, text: str, said: str) -> None:
    """The file is left out, in one line that says why, and its neighbours count."""
    bad = world.put("bad", "")
    bad.write_text(text)
    good = world.put("good", "name: good")

    assert world.found() == [Skill("good", "", good)]
    (problem,) = world.problems
    assert problem.startswith(f"{bad}: ")
    assert said in problem
    assert problem.endswith("; the skill is left out")
    assert "\n" not in problem


def test_a_pipe_is_no_skill(world: World) -> None:
    """It is never opened; nor is a folder by that name, or a link to nowhere."""
    for name in ("a", "b", "c"):
        (world.top / name).mkdir()
    os.mkfifo(world.top / "a/SKILL.md")
    (world.top / "b/SKILL.md").mkdir()
    (world.top / "c/SKILL.md").symlink_to("nowhere")

    assert (world.found(), world.problems) == ([], [])


def test_a_missing_folder_has_none(world: World) -> None:
    """So has a file in its place."""
    (world.top / "file").write_text("x")

    assert (world.found("missing", "file"), world.problems) == ([], [])


def test_skills_are_found_below_and_sorted(world: World) -> None:
    """At every depth, a skill inside a skill too; descriptions become one line."""
    b = world.put("group/b", "name: b\ndescription: |\n  Does\n    this.")
    a = world.put("group/b/inner/a", "name: a\ndescription: 'Use when: asked'")
    world.put("x/node_modules/p", "name: p")
    world.put("x/.git/p", "name: g")

    assert world.found() == [Skill("a", "Use when: asked", a), Skill("b", "Does this.", b)]
    assert world.problems == []


def test_the_later_folder_wins(world: World) -> None:
    """Of two skills with one name the one in the later folder counts, and both are named."""
    far = world.put("far/x", "name: x\ndescription: far")
    near = world.put("near/y", "name: x\ndescription: near")

    assert world.found("far", "near") == [Skill("x", "near", near)]
    assert world.problems == [f"{near} takes the place of {far}: both are called x"]
    assert world.found("near", "far") == [Skill("x", "far", far)]


def test_links_are_followed_once(world: World) -> None:
    """A linked folder counts, the same file twice is no conflict, and a circle ends."""
    world.put("real/x", "name: x")
    (world.top / "skills").mkdir()
    (world.top / "skills/linked").symlink_to(world.top / "real/x")
    (world.top / "real/x/circle").symlink_to(world.top / "real")

    assert world.found("real", "skills") == [Skill("x", "", world.top / "skills/linked/SKILL.md")]
    assert world.problems == []


def test_walking_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many skills, entries or levels: the first count, and the rest is named."""
    for name in ("a", "b", "c"):
        world.put(name, f"name: {name}")
    monkeypatch.setattr(skills, "SKILLS_MAX", 2)
    assert [each.name for each in world.found()] == ["a", "b"]
    assert world.problems == [f"{world.top} has more than 2 skills; the others are left out"]

    monkeypatch.setattr(skills, "SKILLS_MAX", 500)
    monkeypatch.setattr(skills, "ENTRIES_MAX", 5)
    assert len(world.found()) == 2
    assert world.problems == [f"{world.top} has more than 5 entries; the others are left out"]

    monkeypatch.setattr(skills, "ENTRIES_MAX", 20_000)
    monkeypatch.setattr(skills, "DEPTH_MAX", 1)
    world.put("a/deep/er", "name: deep")
    assert [each.name for each in world.found()] == ["a", "b", "c"]


def test_long_things_are_cut(world: World) -> None:
    """A description has its bound; a huge body does not keep the head from being read."""
    path = world.put("x", f"name: x\ndescription: {'d' * 2000}", "b" * 1_000_000)

    assert world.found() == [Skill("x", "d" * 1023 + "…", path)]


def test_a_name_that_is_not_utf_8_is_told(world: World) -> None:
    """Its folder cannot be recorded, so it is left out, and the line about it can be printed."""
    folder = Path(os.fsdecode(os.fsencode(world.top) + b"/\xff"))
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: x\n---\n")

    assert world.found() == []
    (problem,) = world.problems
    assert problem.startswith(f"{world.top}/\N{REPLACEMENT CHARACTER}/SKILL.md: the name of ")
    assert problem.isprintable()
