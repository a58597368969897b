"""Which tools a model is shown: one that is denied whatever its arguments is left out of the request."""

from collections.abc import Iterator, Mapping, Sequence

from holdfast.permission import wildcard
from holdfast.permission.policy import Policy
from holdfast.schema.permission import Rule

_KEYS = {
    "edit": "edit",
    "write": "edit",
    "apply_patch": "edit",
    "list_mcp_resources": "read",
    "list_mcp_resource_templates": "read",
    "read_mcp_resource": "read",
}


def key_of(tool: str, permission: str) -> str:
    """The permission key that a tool is judged by: its own, or that of what it does."""
    return permission if permission != tool else _KEYS.get(tool, tool)


def hidden(tools: Mapping[str, str], policy: Policy) -> set[str]:
    """The tools that are denied as a whole: by the policy, by a ruleset that may only tighten it, or by that
    of any session above. Tools come by name, with the permission that each declares.
    """
    keys = {tool: key_of(tool, permission) for tool, permission in tools.items()}
    wanted = set(keys.values())
    denied = {key for rules in _rulesets(policy) for key in _denied(wanted, rules)}
    return {tool for tool, key in keys.items() if key in denied}


def _rulesets(policy: Policy) -> Iterator[Sequence[Rule]]:
    yield policy.rules
    yield from policy.restrictions
    if policy.above is not None:
        yield from _rulesets(policy.above)


def _denied(keys: set[str], rules: Sequence[Rule]) -> set[str]:
    """The keys whose last rule denies everything. Judged together: this is asked several times a turn."""
    left, denied = set(keys), set[str]()
    for rule in reversed(rules):
        if not left:
            break
        name = rule.permission
        met = left & {name} if name.isidentifier() else {key for key in left if wildcard.match(key, name)}
        left -= met
        if rule.pattern == "*" and rule.action == "deny":
            denied |= met
    return denied
