"""Settings → rules. The order of the settings is the order of the rules, and therefore their meaning."""

from msgspec.structs import replace

from holdfast.schema.config import PermissionConfig
from holdfast.schema.permission import Rule, Ruleset

# Tools that had names of their own before their permissions were one.
EDITS = frozenset(("write", "edit", "patch", "apply_patch", "multiedit"))


def rules(config: PermissionConfig | None, home: str) -> Ruleset:
    """The rules that a `permission` setting stands for, with the home directory put into its patterns."""
    if config is None:
        return []
    if isinstance(config, str):
        return [Rule(permission="*", pattern="*", action=config)]
    if isinstance(config, list):
        return [replace(rule, pattern=expanded(rule.pattern, home)) for rule in config]
    found: Ruleset = []
    for key, value in config.items():
        patterns = {"*": value} if isinstance(value, str) else value
        found.extend(
            Rule(permission=key, pattern=expanded(pattern, home), action=action)
            for pattern, action in patterns.items()
        )
    return found


def expanded(pattern: str, home: str) -> str:
    """A pattern that begins with `~` or `$HOME` names the home directory."""
    for short in ("~", "$HOME"):
        if pattern == short or pattern.startswith(f"{short}/"):
            return home + pattern.removeprefix(short)
    return pattern


def from_tools(tools: dict[str, bool] | None) -> PermissionConfig:
    """The older `tools` switches as a permission setting; it stands before an explicit one."""
    named = {"edit" if name in EDITS else name: on for name, on in (tools or {}).items()}
    return {name: "allow" if on else "deny" for name, on in named.items()}
