"""A session's policy: its rules, those that may only tighten them, and the ceiling of the session above.

Pure. Rules are the agent's (the user's settings included), then the session's own; the last match wins. A
child is never allowed what its parent's policy denies or asks, down the whole tree: the strictest verdict
holds. A saved approval turns ask into allow, and nothing else. To edit what steers the next run takes a rule,
or an approval, that names the path (`steering`); and some permissions are allowed by a rule that names them
alone, since who writes `"*": "allow"` thinks of tools.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.permission import steering, wildcard
from holdfast.permission.evaluate import evaluate, last_match, restricted, stricter
from holdfast.schema.permission import Action, Rule, Ruleset

BY_NAME: Final = frozenset(("private_address",))
"""What `"*": "allow"` does not allow."""


class Approved(msgspec.Struct, frozen=True):
    """Something that the user allowed for good."""

    permission: str
    pattern: str


class Policy(msgspec.Struct, frozen=True):
    """What a session may do."""

    rules: tuple[Rule, ...]
    restrictions: tuple[Ruleset, ...] = ()
    above: "Policy | None" = None

    def verdict(self, permission: str, pattern: str, approved: Iterable[Approved] = ()) -> Action:
        """Allow, ask or deny."""
        found = self._ruled(permission, pattern)
        if found == "ask" and any(_covers(each, permission, pattern) for each in approved):
            return "allow"
        return found

    def _ruled(self, permission: str, pattern: str) -> Action:
        """The verdict without approvals, of this session and of all above it."""
        found = steering.verdict(permission, pattern, evaluate(permission, pattern, self.rules), self.rules)
        if found == "allow" and permission in BY_NAME and not self.names(permission, pattern):
            found = "ask"
        own = restricted(found, permission, pattern, self.restrictions)
        if self.above is None or own == "deny":
            return own
        return stricter(own, self.above.verdict(permission, pattern))

    def names(self, permission: str, pattern: str) -> bool:
        """Whether the rule that decides names the permission, and does not only match it by a wildcard."""
        rule = last_match(permission, pattern, self.rules)
        return rule is not None and rule.permission == permission

    def strictest(
        self, permission: str, patterns: Sequence[str], approved: Sequence[Approved] = ()
    ) -> Action:
        """The verdict over several patterns; without any there is nothing to refuse."""
        verdict: Action = "allow"
        for pattern in patterns:
            verdict = stricter(verdict, self.verdict(permission, pattern, approved))
        return verdict


def _covers(approved: Approved, permission: str, pattern: str) -> bool:
    return (
        wildcard.match(permission, approved.permission)
        and wildcard.match(pattern, approved.pattern)
        and (permission != steering.PERMISSION or steering.names(approved.pattern, pattern))
    )
