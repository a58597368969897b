"""The Context Epoch in force, and its place among the session's records."""

import msgspec

from holdfast.provider.request import lowering
from holdfast.schema.epoch import ContextEpoch


class Epoch(msgspec.Struct, frozen=True):
    """The epoch in force, and its place among the session's records."""

    value: ContextEpoch
    position: int
    fresh: bool = False
    """Whether it began at this boundary."""

    @property
    def id(self) -> str:
        """The epoch's id, as steps record it."""
        return self.value.id

    @property
    def rules(self) -> int:
        """The rules by which history is lowered in it."""
        return rules_of(self.value)


def rules_of(epoch: ContextEpoch | None) -> int:
    """The rules by which history is lowered. An epoch pins them when it begins and never changes them."""
    if epoch is None:
        return lowering.RULES
    return lowering.FIRST_RULES if epoch.lowering is None else epoch.lowering
