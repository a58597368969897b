"""`core/skills`: the skills that the agent may use, by name and description; a tool gives their text.

Later folders win over earlier ones: the user's (Claude's and the common folder, OpenCode's, ours), then the
project's from the top of the worktree down, then what the settings name. What must stay true: skills of a
project that is not trusted are left out, and only what the agent is permitted is listed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from holdfast import flags
from holdfast.config import places
from holdfast.config.documents import markdown
from holdfast.config.load import Trusted
from holdfast.config.loaded import ConfigFolder, Loaded
from holdfast.config.places import Places
from holdfast.context.source import ABSENT, Codec, ContextSource, Missing
from holdfast.context.sources.look import Warn, look
from holdfast.location import skills as location_skills
from holdfast.location.skills import BadSkill, Skill

KEY = "core/skills"
LISTED_MAX: Final = 200
CONFIGURED_MAX: Final = 50

_OTHERS = (Path(".claude/skills"), Path(".agents/skills"))
_IN_FOLDER = ("skill", "skills")

_INTRODUCTION = (
    "Skills are instructions for particular kinds of work. When one fits what you are about to do, load it "
    "with the skill tool, by its name, before you begin."
)
_CHANGED = "The skills have changed. This list supersedes the one that you were given before."
_GONE = "The skills that you were told of are no longer available; do not try to load them."

Find = Callable[[list[str]], Sequence[Skill]]
"""Looks for the skills, and is given a list for problems. Waits for the disk."""


class SkillSeen(msgspec.Struct, frozen=True):
    """What the model is shown of a skill."""

    name: str
    description: str


def skills(find: Find, *, allowed: Callable[[str], bool], warn: Warn) -> ContextSource[tuple[SkillSeen, ...]]:
    """The source. `allowed` says for a name whether the agent may use it."""

    async def load() -> tuple[SkillSeen, ...] | Missing:
        found = await look("the skills", lambda problems: listed(find(problems), allowed, problems), warn)
        return ABSENT if found == () else found

    return ContextSource(
        key=KEY,
        codec=Codec(tuple[SkillSeen, ...]),
        load=load,
        baseline=lambda now: f"{_INTRODUCTION}\n{_list(now)}",
        update=lambda _, now: f"{_CHANGED}\n{_list(now)}",
        removal=lambda _: _GONE,
    )


def listed(
    found: Sequence[Skill], allowed: Callable[[str], bool], problems: list[str]
) -> tuple[SkillSeen, ...]:
    """What is listed: the permitted ones that have a description, by name."""
    shown = sorted((each for each in found if each.description and allowed(each.name)), key=lambda s: s.name)
    if len(shown) > LISTED_MAX:
        problems.append(
            f"there are {len(shown)} skills; those after {LISTED_MAX} are not listed to the model"
        )
    return tuple(SkillSeen(each.name, each.description) for each in shown[:LISTED_MAX])


def finder(where: Places, loaded: Loaded, trusted: Trusted) -> Find:
    """Looks for the skills of a place."""

    def find(problems: list[str]) -> list[Skill]:
        folders = skill_folders(where, loaded, trusted, problems)
        return location_skills.discover(folders, split=markdown.split, problems=problems, known=known)

    def known(path: Path) -> str | None:
        if not loaded.trust.covers(path):
            return None
        data = loaded.trust.read(path)
        if data is None:
            raise BadSkill("it is not what was trusted")
        return data.decode("utf-8-sig", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")

    return find


def skill_folders(where: Places, loaded: Loaded, trusted: Trusted, problems: list[str]) -> list[Path]:
    """The folders to look in, the least near first. Waits for the disk."""
    personal = (where.opencode_config, where.holdfast_config)
    own = [each for each in loaded.folders if each.path in personal]
    other = [each for each in loaded.folders if each.path not in personal]
    return [
        *(where.home / name for name in _OTHERS),
        *_in_folders(own, problems),
        *_of_project(where, trusted, problems),
        *_in_folders(other, problems),
        *_configured(where, loaded, trusted, problems),
    ]


def _of_project(where: Places, trusted: Trusted, problems: list[str]) -> Iterator[Path]:
    if flags.enabled(flags.DISABLE_PROJECT_CONFIG):
        return
    for folder in places.downward(where.worktree, where.directory):
        for path in (folder / name for name in _OTHERS):
            yield from _if_trusted(path, trusted(folder), folder, problems)


def _in_folders(folders: Sequence[ConfigFolder], problems: list[str]) -> Iterator[Path]:
    for each in folders:
        for path in (each.path / name for name in _IN_FOLDER):
            yield from _if_trusted(path, each.trusted, each.path.parent, problems)


def _if_trusted(path: Path, is_trusted: bool, folder: Path, problems: list[str]) -> Iterator[Path]:  # noqa: FBT001
    if is_trusted:
        yield path
    elif os.path.isdir(path):  # noqa: PTH112 - false, and no error, for what is not ours to see
        problems.append(
            f"{folder} is not trusted, so the skills in {path} are left out; "
            f"`holdfast trust {folder}` makes them count"
        )


def _configured(where: Places, loaded: Loaded, trusted: Trusted, problems: list[str]) -> Iterator[Path]:
    """Folders that the settings name; relative ones lie beside the file that names them.

    The user may name a folder of every project; what lies there is still the project's, and needs trust.
    """
    config = loaded.config.skills
    if config is None:
        return
    origin = loaded.origins.get(("skills", "paths"))
    document = None if origin is None else origin.document
    base = where.directory if document is None else document.folder
    for named in (config.paths or [])[:CONFIGURED_MAX]:
        path = where.home / named[2:] if named.startswith("~/") else base / named
        if os.path.isdir(path):  # noqa: PTH112 - false, and no error, for what is not ours to see
            is_own = not Path(os.path.normpath(path)).is_relative_to(where.worktree)
            yield from _if_trusted(path, is_own or trusted(where.directory), where.worktree, problems)
        else:
            problems.append(f"the settings look for skills in {path}, which is no folder")
    if config.urls:
        problems.append("the settings name addresses of skills; only folders are looked in")


def _list(shown: Sequence[SkillSeen]) -> str:
    lines = (f"- {each.name}: {each.description}" for each in shown)
    return "\n".join(("<available_skills>", *lines, "</available_skills>"))
