"""A session's policy: its rules, those that may only tighten them, and the ceiling of the session above.

Pure. Rules are the agent's (the user's settings included), then the session's own; the last match wins. A
child is never allowed what its parent's policy denies or asks, down the whole tree: the strictest verdict
holds. A saved approval turns ask into allow, and nothing else. To edit what steers the next run takes a rule,
or an approval, that names the path (`steering`); and some permissions are allowed by a rule that names them
alone, since who writes `"*": "allow"` thinks of tools. Paths are asked for as they are seen from the top of
the project; a rule that is written with an absolute path matches them too.
"""

import posixpath
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.permission import steering, wildcard
from holdfast.permission.evaluate import evaluate, last_match, restricted, stricter
from holdfast.schema.permission import Action, Rule, Ruleset

BY_NAME: Final = frozenset(("private_address", "unconfined"))
"""What `"*": "allow"` does not allow."""
OF_PATHS: Final = frozenset(("read", "edit", "list"))
"""Permissions whose patterns are paths."""


class Approved(msgspec.Struct, frozen=True):
    """Something that the user allowed for good."""

    permission: str
    pattern: str


class Policy(msgspec.Struct, frozen=True):
    """What a session may do."""

    rules: tuple[Rule, ...]
    restrictions: tuple[Ruleset, ...] = ()
    above: "Policy | None" = None
    top: str = ""
    """The top of the project."""

    def verdict(self, permission: str, pattern: str, approved: Iterable[Approved] = ()) -> Action:
        """Allow, ask or deny."""
        found = self._ruled(permission, pattern)
        if found == "ask" and any(_covers(each, permission, pattern) for each in approved):
            return "allow"
        return found

    def _ruled(self, permission: str, pattern: str) -> Action:
        """The verdict without approvals, of this session and of all above it."""
        rules = self._matching(permission, pattern, self.rules)
        # What steers takes a rule that names it: an absolute one for the whole project does not.
        found = steering.verdict(permission, pattern, evaluate(permission, pattern, rules), self.rules)
        if found == "allow" and permission in BY_NAME and not self.names(permission, pattern):
            found = "ask"
        tighter = [self._matching(permission, pattern, each) for each in self.restrictions]
        own = restricted(found, permission, pattern, tighter)
        if self.above is None or own == "deny":
            return own
        return stricter(own, self.above.verdict(permission, pattern))

    def _matching(self, permission: str, pattern: str, rules: Sequence[Rule]) -> Sequence[Rule]:
        """The rules, those that match a path by its absolute name written as that path."""
        if permission not in OF_PATHS or not self.top or pattern.startswith("/"):
            return rules
        absolute = posixpath.normpath(posixpath.join(self.top, pattern))
        return [
            msgspec.structs.replace(rule, pattern=pattern)
            if rule.pattern.startswith("/") and wildcard.match(absolute, rule.pattern)
            else rule
            for rule in rules
        ]

    def names(self, permission: str, pattern: str) -> bool:
        """Whether the rule that decides names the permission, and does not only match it by a wildcard."""
        rule = last_match(permission, pattern, self.rules)
        return rule is not None and rule.permission == permission

    def strictest(
        self,
        permission: str,
        patterns: Sequence[str],
        approved: Sequence[Approved] = (),
        *,
        aliases: Sequence[str] = (),
        unclear: Sequence[str] = (),
    ) -> Action:
        """The verdict over several patterns; without any there is nothing to refuse.

        `aliases` are other spellings of the patterns: they count only for rules that name something, and only
        where those are stricter. `unclear` are permissions that it may need for anything at all.
        """
        verdict: Action = "allow"
        for pattern in patterns:
            verdict = stricter(verdict, self.verdict(permission, pattern, approved))
        for alias in aliases:
            found = self.tightened(permission, alias)
            covered = found == "ask" and any(_covers(each, permission, alias) for each in approved)
            verdict = verdict if covered else stricter(verdict, found)
        for each in unclear:
            verdict = stricter(verdict, self.anything(each))
        return verdict

    def anything(self, permission: str) -> Action:
        """The verdict for something that may be anything: allow only where no rule is against something."""
        found = _anything(permission, self.rules, "ask")
        for rules in self.restrictions:
            found = stricter(found, _anything(permission, rules, "allow"))
        return found if self.above is None else stricter(found, self.above.anything(permission))

    def tightened(self, permission: str, pattern: str) -> Action:
        """The strictest verdict of rules that name something; allow where none does."""
        found: Action = "allow"
        for rules in (self.rules, *self.restrictions):
            rule = last_match(permission, pattern, [each for each in rules if each.pattern.strip("*")])
            found = found if rule is None else stricter(found, rule.action)
        return found if self.above is None else stricter(found, self.above.tightened(permission, pattern))


def _anything(permission: str, rules: Sequence[Rule], otherwise: Action) -> Action:
    """Rules for everything hold as they are; of an exception it is not known whether it is met: ask."""
    general, exception = otherwise, otherwise
    for rule in rules:
        if not wildcard.match(permission, rule.permission):
            continue
        if not rule.pattern.strip("*"):
            general = exception = rule.action
        elif rule.action != "allow":
            exception = stricter(exception, "ask")
    return stricter(general, exception)


def _covers(approved: Approved, permission: str, pattern: str) -> bool:
    return (
        wildcard.match(permission, approved.permission)
        and wildcard.match(pattern, approved.pattern)
        and (permission != steering.PERMISSION or steering.names(approved.pattern, pattern))
    )
