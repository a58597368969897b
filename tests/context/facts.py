"""A fact that a test may change, and the source that observes it."""

from typing import Any

from holdfast.context.observation import Observation
from holdfast.context.results import Initialized
from holdfast.context.snapshot import Snapshot
from holdfast.context.source import Codec, ContextSource, Missing
from holdfast.context.system_context import SystemContext, initialize, observe


class Fact:
    """`value` is what the loader finds next: a value, ABSENT, UNAVAILABLE, or an exception to raise.

    `loads` counts how often it was looked at, `rendered` names each text that was asked for.
    """

    def __init__(self, key: str, value: Any, *, type_: Any = str, removable: bool = True) -> None:
        self.key = key
        self.value = value
        self.loads = 0
        self.rendered: list[str] = []
        self.source: ContextSource[Any] = ContextSource(
            key=key,
            codec=Codec(type_),
            load=self._load,
            baseline=lambda value: self._text("baseline", f"{key} is {value}"),
            update=lambda _, value: self._text("update", f"{key} is now {value}"),
            removal=(lambda _: self._text("removal", f"{key} no longer applies")) if removable else None,
        )
        self.context = SystemContext.make(self.source)

    async def _load(self) -> Any | Missing:
        self.loads += 1
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value

    def _text(self, name: str, text: str) -> str:
        self.rendered.append(name)
        return text


def combined(*facts: Fact) -> SystemContext:
    """The facts in this order."""
    return SystemContext.combine(*(fact.context for fact in facts))


async def observed(*facts: Fact) -> Observation:
    """What is found of the facts in this order."""
    return await observe(combined(*facts))


async def admitted(*facts: Fact) -> Snapshot:
    """The snapshot of a session whose model has just been told the facts."""
    started = initialize(await observed(*facts))
    assert isinstance(started, Initialized)
    return started.snapshot
