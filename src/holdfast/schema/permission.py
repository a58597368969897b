"""One permission rule. How rules are evaluated is `permission/`'s business."""

from typing import Literal

from holdfast.schema.wire import Wire

Action = Literal["allow", "deny", "ask"]


class Rule(Wire, frozen=True, kw_only=True):
    """What may be done: both `permission` (a key such as `edit`) and `pattern` may hold wildcards."""

    permission: str
    pattern: str
    action: Action


Ruleset = list[Rule]
"""Rules in order: the last one that matches wins."""
