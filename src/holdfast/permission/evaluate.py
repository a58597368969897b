"""What the rules say: the last rule that matches wins, and without one the answer is ask.

Restrictions are rules of a source that may only tighten (a folder that is not trusted, a provider's
host): beside the policy's verdict stands theirs, and the stricter of the two holds. What they do not mention
they do not touch.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from holdfast.permission import wildcard
from holdfast.schema.permission import Action, Rule

_STRICTNESS: Final[dict[Action, int]] = {"allow": 0, "ask": 1, "deny": 2}


def last_match(permission: str, pattern: str, *rulesets: Sequence[Rule]) -> Rule | None:
    """The last rule, over the rulesets in order, that matches both the key and the pattern."""
    for rules in reversed(rulesets):
        for rule in reversed(rules):
            if wildcard.match(permission, rule.permission) and wildcard.match(pattern, rule.pattern):
                return rule
    return None


def evaluate(permission: str, pattern: str, *rulesets: Sequence[Rule]) -> Action:
    """The verdict of a policy."""
    rule = last_match(permission, pattern, *rulesets)
    return "ask" if rule is None else rule.action


def stricter(one: Action, other: Action) -> Action:
    """The stricter of two verdicts: deny before ask before allow."""
    return max(one, other, key=_STRICTNESS.__getitem__)


def restricted(
    verdict: Action, permission: str, pattern: str, restrictions: Iterable[Sequence[Rule]]
) -> Action:
    """The verdict once each ruleset that may only tighten has been asked by itself."""
    for rules in restrictions:
        rule = last_match(permission, pattern, rules)
        if rule is not None:
            verdict = stricter(verdict, rule.action)
    return verdict
