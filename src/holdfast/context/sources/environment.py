"""`core/environment`: where the agent works."""

from pathlib import Path

import msgspec

from holdfast.context.source import Codec, ContextSource

KEY = "core/environment"


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """`worktree` is the top of the checkout, or the directory itself where there is none."""

    directory: str
    worktree: str
    git: bool
    platform: str


def environment(*, directory: Path, worktree: Path, git: bool, platform: str) -> ContextSource[Environment]:
    """The source; its maker knows the place. It is always there, so nothing announces its removal."""
    value = Environment(directory=str(directory), worktree=str(worktree), git=git, platform=platform)

    async def load() -> Environment:
        return value

    return ContextSource(
        key=KEY,
        codec=Codec(Environment),
        load=load,
        waits=False,
        baseline=lambda now: f"This is where you work:\n{_block(now)}",
        update=lambda _, now: f"Where you work has changed. It is now:\n{_block(now)}",
    )


def _block(value: Environment) -> str:
    lines = (
        f"Working directory: {value.directory}",
        f"Top of the project: {value.worktree}",
        f"Git repository: {'yes' if value.git else 'no'}",
        f"Platform: {value.platform}",
    )
    return "\n".join(("<env>", *(f"  {line}" for line in lines), "</env>"))
