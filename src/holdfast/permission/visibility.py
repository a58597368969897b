"""Which tools a model is shown: one that is denied whatever its arguments is left out of the request."""

from collections.abc import Iterable, Sequence

from holdfast.permission import wildcard
from holdfast.schema.rule import Rule

_KEYS = {
    "edit": "edit",
    "write": "edit",
    "apply_patch": "edit",
    "list_mcp_resources": "read",
    "list_mcp_resource_templates": "read",
    "read_mcp_resource": "read",
}


def key_of(tool: str) -> str:
    """The permission key that a tool is judged by."""
    return _KEYS.get(tool, tool)


def hidden(
    tools: Iterable[str], policy: Sequence[Rule], restrictions: Iterable[Sequence[Rule]] = ()
) -> set[str]:
    """The tools that the policy, or any ruleset that may only tighten, denies as a whole."""
    rulesets = [policy, *restrictions]
    return {tool for tool in tools if any(_denied(key_of(tool), rules) for rules in rulesets)}


def _denied(key: str, rules: Sequence[Rule]) -> bool:
    for rule in reversed(rules):
        if wildcard.match(key, rule.permission):
            return rule.pattern == "*" and rule.action == "deny"
    return False
