"""Permission rules: wildcards, the last match, restrictions, settings, hidden tools."""

import time
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.permission import evaluate, from_config, visibility, wildcard
from holdfast.permission.policy import Policy
from holdfast.schema.permission import Action, Rule


def rule(permission: str, pattern: str, action: Action) -> Rule:
    return Rule(permission=permission, pattern=pattern, action=action)


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("a/b/.env", "*.env", True),
        ("a/b/.env.local", "*.env", False),
        ("git status", "git status *", True),
        ("git status --short", "git status *", True),
        ("git statuses", "git status *", False),
        ("a\nb", "a*b", True),
        ("a\\b", "a/b", True),
        ("ab", "a?b", False),
        ("axb", "a?b", True),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("[x]", "[x]", True),
        ("", "", True),
        ("", "*", True),
        ("x", "", False),
        ("", " *", True),
        ("A", "a", False),
    ],
)
def test_wildcards(text: str, pattern: str, matches: bool) -> None:
    """`*` and `?` know no segments, everything else is literal, and ` *` at the end may be absent."""
    assert wildcard.match(text, pattern) is matches


SIGNS = st.text(alphabet="ab/ *?\\\n", max_size=8)


@given(SIGNS, SIGNS)
def test_the_matcher_agrees_with_an_obvious_one(text: str, pattern: str) -> None:
    """The same answer as the definition, spelled out by recursion."""
    text_, pattern_ = text.replace("\\", "/"), pattern.replace("\\", "/")

    @cache
    def obvious(at: int, here: int, end: int) -> bool:
        if here == end:
            return at == len(text_)
        if pattern_[here] == "*":
            return any(obvious(later, here + 1, end) for later in range(at, len(text_) + 1))
        return at < len(text_) and pattern_[here] in ("?", text_[at]) and obvious(at + 1, here + 1, end)

    expected = obvious(0, 0, len(pattern_)) or (pattern_.endswith(" *") and obvious(0, 0, len(pattern_) - 2))
    assert wildcard.match(text, pattern) is expected


def test_a_hostile_pattern_is_no_trap() -> None:
    """A pattern of many stars against a long text ends at once."""
    before = time.process_time()
    assert not wildcard.match("a" * 5000, "*a" * 30 + "b")
    assert time.process_time() - before < 2


def test_the_last_match_wins_and_nothing_means_ask() -> None:
    """Over all rulesets in order; keys may be wildcards too."""
    first = [rule("*", "*", "allow"), rule("bash", "*", "ask"), rule("bash", "git *", "allow")]
    second = [rule("mcp_*", "*", "deny")]

    assert evaluate.evaluate("bash", "rm -rf x", first, second) == "ask"
    assert evaluate.evaluate("bash", "git push", first, second) == "allow"
    assert evaluate.evaluate("mcp_files", "x", first, second) == "deny"
    assert evaluate.evaluate("mcp_files", "x", second, first) == "allow"
    assert evaluate.evaluate("edit", "x") == "ask"


ACTIONS = st.sampled_from(["allow", "ask", "deny"])
RULES = st.lists(
    st.builds(rule, st.sampled_from(["*", "bash", "edit"]), st.sampled_from(["*", "a*", "ab"]), ACTIONS),
    max_size=5,
)


@given(RULES, RULES, st.sampled_from(["bash", "edit", "read"]), st.sampled_from(["a", "ab", "x"]))
def test_restrictions_never_loosen(policy: list[Rule], tight: list[Rule], key: str, pattern: str) -> None:
    """Whatever they say, the verdict is the policy's or a stricter one, and no stricter than theirs."""
    verdict = evaluate.evaluate(key, pattern, policy)
    after = evaluate.restricted(verdict, key, pattern, [tight])
    heard = evaluate.last_match(key, pattern, tight)

    assert evaluate.stricter(verdict, after) == after
    assert after in (verdict, heard and heard.action)


def test_what_restrictions_do_not_mention_stays() -> None:
    """An allow of theirs changes nothing; a deny with an exception holds except there."""
    tight = [rule("bash", "*", "deny"), rule("bash", "git *", "allow")]

    assert evaluate.restricted("allow", "edit", "x", [tight]) == "allow"
    assert evaluate.restricted("allow", "bash", "rm", [tight]) == "deny"
    assert evaluate.restricted("allow", "bash", "git log", [tight]) == "allow"
    assert evaluate.restricted("ask", "bash", "git log", [tight]) == "ask"
    assert evaluate.restricted("deny", "bash", "x", [[rule("*", "*", "ask")]]) == "deny"


def test_settings_become_rules_in_their_order() -> None:
    """Order is kept, and `~` and `$HOME` are put in where they stand at the beginning."""
    config: dict[str, Action | dict[str, Action]] = {
        "bash": {"*": "ask", "git *": "allow"},
        "*": "deny",
        "external_directory": {"~/x/*": "allow", "$HOME": "ask", "~x": "deny", "a/~": "deny"},
    }
    assert from_config.rules(config, "/h") == [
        rule("bash", "*", "ask"),
        rule("bash", "git *", "allow"),
        rule("*", "*", "deny"),
        rule("external_directory", "/h/x/*", "allow"),
        rule("external_directory", "/h", "ask"),
        rule("external_directory", "~x", "deny"),
        rule("external_directory", "a/~", "deny"),
    ]
    assert from_config.rules("ask", "/h") == [rule("*", "*", "ask")]
    assert from_config.rules([rule("read", "~/k", "deny")], "/h") == [rule("read", "/h/k", "deny")]
    assert from_config.rules(None, "/h") == []


def test_older_tool_switches_become_permissions() -> None:
    """Every editing tool means `edit`."""
    assert from_config.from_tools({"write": False, "bash": True, "mcp_x": False}) == {
        "edit": "deny",
        "bash": "allow",
        "mcp_x": "deny",
    }
    assert from_config.from_tools(None) == {}


def test_a_tool_that_is_denied_as_a_whole_is_hidden() -> None:
    """Only when the last rule for its key denies everything; editing tools share a key, and a tool may name
    the key that it goes by. What a session above denies is hidden too.
    """
    rules = (rule("*", "*", "allow"), rule("edit", "*", "deny"), rule("bash", "rm *", "deny"))
    names = ["edit", "write", "apply_patch", "bash", "read", "webfetch", "read_mcp_resource"]
    tools = {**{name: name for name in names}, "patcher": "edit"}

    def hidden(*rules: Rule, **more: Any) -> set[str]:
        return visibility.hidden(tools, Policy(rules, **more))

    edits = {"edit", "write", "apply_patch", "patcher"}
    assert hidden(*rules) == edits
    assert hidden(*rules, rule("edit", "docs/*", "allow")) == set()
    assert hidden(*rules, restrictions=((rule("webfetch", "*", "deny"),),)) == {*edits, "webfetch"}
    assert hidden(rule("read", "*", "deny")) == {"read", "read_mcp_resource"}
    above = Policy((rule("*", "*", "allow"),), above=Policy((rule("webfetch", "*", "deny"),)))
    assert hidden(*rules, above=above) == {*edits, "webfetch"}
