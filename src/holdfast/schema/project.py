"""A project: the repository (or the lack of one) that sessions belong to."""

from typing import Literal

from holdfast.schema.ids import ProjectID
from holdfast.schema.wire import Count, Record, Wire


class ProjectIcon(Wire, frozen=True, kw_only=True):
    url: str | None = None
    override: str | None = None
    color: str | None = None


class ProjectCommands(Wire, frozen=True, kw_only=True):
    """`start` is run in each new checkout."""

    start: str | None = None


class ProjectTime(Wire, frozen=True, kw_only=True):
    """`initialized` is when the `init` command was last carried out."""

    created: Count
    updated: Count
    initialized: Count | None = None


class Project(Record, frozen=True, kw_only=True):
    """`worktree` is the checkout in which it was first opened, `sandboxes` are the others."""

    id: ProjectID
    worktree: str
    vcs: Literal["git"] | None = None
    name: str | None = None
    icon: ProjectIcon | None = None
    commands: ProjectCommands | None = None
    time: ProjectTime
    sandboxes: list[str]
