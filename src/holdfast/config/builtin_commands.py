"""The commands that come with Holdfast; their texts lie in `builtin/commands/`."""

from functools import cache
from pathlib import Path

from holdfast.schema.config import CommandConfig

NAMES = ("init", "review")


def builtin() -> dict[str, CommandConfig]:
    """The commands by name."""
    return {
        "init": CommandConfig(
            template=template("init"), description="Write AGENTS.md: what an agent must know here."
        ),
        "review": CommandConfig(
            template=template("review"),
            description="Review what is not committed, or a commit, branch or pull request.",
            subtask=True,
        ),
    }


@cache
def template(name: str) -> str:
    """The text of a command."""
    return (Path(__file__).parent / "builtin" / "commands" / f"{name}.md").read_text("utf-8").strip()
