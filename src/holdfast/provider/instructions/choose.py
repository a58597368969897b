"""Chooses the base instructions of a model, by a table.

What must stay true: the same model gets the same bytes in every process of one version; the text names no
other product as what the model is run by. docs/instructions.md says what each text must make a model do.
"""

from functools import cache
from importlib import resources
from typing import Final

from holdfast.provider.catalog.model import Model
from holdfast.schema.agent import Agent

# Words in a model's id or family, the first row that fits wins.
FAMILIES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("claude", ("claude",)),
    ("codex", ("gpt-5", "gpt5", "codex", "gpt-6")),
    ("gpt", ("gpt", "o1", "o3", "o4", "chatgpt")),
    ("gemini", ("gemini", "gemma")),
    ("kimi", ("kimi", "moonshot", "qwen", "qwq")),
)
DEFAULT: Final = "default"

BRIEF_CONTEXT_MAX: Final = 16_384
"""Models with a context of at most so many tokens get a text that leaves room for the work."""


BRIEF_TOOLS: Final = frozenset({"read", "edit", "grep", "bash"})
"""The tools that such a model is shown: each definition costs it room, and more of them confuse it."""


def family(model: Model) -> str:
    """The name of the model's row in the table."""
    named = f"{model.id} {model.api_id} {model.family}".lower()
    words = set(named.replace("/", " ").replace("-", " ").replace(":", " ").replace("_", " ").split())
    for name, signs in FAMILIES:
        if any(sign in words if len(sign) == 2 else sign in named for sign in signs):
            return name
    return DEFAULT


def is_brief(model: Model) -> bool:
    """Whether the model is so small that it gets the short profile: a brief text, and few tools."""
    return 0 < model.limit.context <= BRIEF_CONTEXT_MAX


def other_edits(model: Model) -> frozenset[str]:
    """The tools for changing files that the model is not shown: it was trained on patches, or on edits."""
    id = model.id.lower()
    patches = "gpt-" in id and "oss" not in id and "gpt-4" not in id
    return frozenset({"edit", "write"}) if patches else frozenset({"apply_patch"})


def instructions(model: Model) -> str:
    """The base instructions for a model."""
    if is_brief(model):
        return _text("brief")
    return f"{_text('core')}\n\n{_text(family(model))}"


def system_blocks(model: Model, agent: Agent) -> tuple[str, ...]:
    """What a session gives its model first: the base instructions, then the agent's own.

    An agent's text never replaces the base: what may be trusted, what a denial means and what stays secret
    hold for every agent. The hidden ones only write a title or a summary, without tools, and stand alone.
    """
    own = (agent.prompt,) if agent.prompt else ()
    if agent.native and agent.hidden and own:
        return own
    return (instructions(model), *own)


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()
