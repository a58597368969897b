"""Policies: rules, restrictions, ceilings down the tree, and approvals that only turn ask into allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.permission.policy import Approved, Policy
from holdfast.schema.permission import Action, Rule

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
KEYS = st.sampled_from(["edit", "bash", "read", "*", "mcp_*"])
PATTERNS = st.sampled_from(["*", "a.py", "src/*", "*.env", "git status *"])
RULES = st.lists(
    st.builds(
        Rule,
        permission=KEYS,
        pattern=PATTERNS,
        action=st.sampled_from(["allow", "ask", "deny"]),
    ),
    max_size=6,
)


@st.composite
def policies(draw: st.DrawFn, depth: int = 4) -> Policy:
    """A policy with any number of sessions above it."""
    above = draw(policies(depth=depth - 1)) if depth and draw(st.booleans()) else None
    return Policy(tuple(draw(RULES)), tuple(draw(st.lists(RULES, max_size=2))), above)


def rule(permission: str, pattern: str, action: str) -> Rule:
    """A rule in a line."""
    return Rule(permission=permission, pattern=pattern, action=action)  # type: ignore[arg-type]


def test_the_last_rule_that_matches_wins() -> None:
    """Without one the answer is ask."""
    policy = Policy((rule("*", "*", "allow"), rule("edit", "*", "deny"), rule("edit", "a.py", "allow")))

    assert policy.verdict("edit", "a.py") == "allow"
    assert policy.verdict("edit", "b.py") == "deny"
    assert Policy(()).verdict("edit", "a.py") == "ask"


def test_an_approval_never_lifts_a_deny() -> None:
    """It turns ask into allow."""
    policy = Policy((rule("*", "*", "ask"), rule("edit", "*.env", "deny")))
    approved = [Approved("edit", "*")]

    assert policy.verdict("edit", "a.py", approved) == "allow"
    assert policy.verdict("edit", "x.env", approved) == "deny"
    assert policy.verdict("bash", "ls", approved) == "ask"


def test_some_permissions_are_allowed_by_their_own_name_alone() -> None:
    """`"*": "allow"` thinks of tools; an approval of that very permission counts, and a deny stays one."""

    def verdict(*rules: Rule, approved: tuple[Approved, ...] = ()) -> Action:
        return Policy(rules).verdict("private_address", "http://localhost:1", approved)

    anything = Rule(permission="*", pattern="*", action="allow")
    named = Rule(permission="private_address", pattern="http://localhost:*", action="allow")
    assert (verdict(anything), verdict(anything, named)) == ("ask", "allow")
    assert verdict(named, anything) == "ask"
    assert verdict(anything, approved=(Approved("private_address", "http://localhost:1"),)) == "allow"
    assert verdict(named, Rule(permission="*", pattern="*", action="deny")) == "deny"


def test_several_patterns_get_the_strictest_verdict() -> None:
    """None at all is nothing to refuse."""
    policy = Policy((rule("*", "*", "allow"), rule("bash", "rm *", "deny"), rule("bash", "git *", "ask")))

    assert policy.strictest("bash", []) == "allow"
    assert policy.strictest("bash", ["ls", "git push"]) == "ask"
    assert policy.strictest("bash", ["ls", "git push", "rm x"]) == "deny"


@pytest.mark.ci
@given(policies(), KEYS, PATTERNS)
def test_no_child_is_allowed_what_any_session_above_it_denies_or_asks(
    policy: Policy, key: str, pattern: str
) -> None:
    """Down the whole tree."""
    verdict = STRICTNESS[policy.verdict(key, pattern)]
    above = policy.above
    while above is not None:
        assert verdict >= STRICTNESS[above.verdict(key, pattern)]
        above = above.above


@pytest.mark.ci
@given(policies(), KEYS, PATTERNS, st.lists(st.builds(Approved, KEYS, PATTERNS), max_size=3))
def test_approvals_only_ever_turn_ask_into_allow(
    policy: Policy, key: str, pattern: str, approved: list[Approved]
) -> None:
    """Whatever was approved."""
    before, after = policy.verdict(key, pattern), policy.verdict(key, pattern, approved)

    assert (before, after) in {("allow", "allow"), ("ask", "ask"), ("ask", "allow"), ("deny", "deny")}


def test_another_spelling_only_tightens() -> None:
    """By rules that name something: what holds for everything was judged by the pattern itself."""
    policy = Policy(
        (rule("bash", "*", "ask"), rule("bash", "/usr/bin/ls *", "allow"), rule("bash", "rm *", "deny"))
    )

    assert policy.strictest("bash", ["/usr/bin/ls a"], aliases=["ls a"]) == "allow"
    assert policy.strictest("bash", ["/usr/bin/ls a"], aliases=["rm a"]) == "deny"
    assert policy.strictest("bash", ["make"], aliases=["/usr/bin/ls a"]) == "ask"
    above = Policy((rule("*", "*", "allow"),), ([rule("bash", "curl *", "ask")],), policy)
    assert above.strictest("bash", ["/usr/bin/ls"], aliases=["rm a"]) == "deny"
    assert above.strictest("bash", ["/usr/bin/ls"], aliases=["curl a"]) == "ask"
    assert (
        above.strictest("bash", ["/usr/bin/ls"], [Approved("bash", "curl *")], aliases=["curl a"]) == "allow"
    )


def test_what_may_be_anything_is_allowed_only_where_nothing_is_restricted() -> None:
    """An exception that might be met asks; a general rule holds as it is, and later ones replace earlier."""
    free, deny_all = rule("*", "*", "allow"), rule("bash", "*", "deny")
    listed = rule("bash", "ls *", "allow")

    assert Policy((free,)).anything("bash") == "allow"
    assert Policy(()).anything("bash") == "ask"
    assert Policy((free, listed)).anything("bash") == "allow"
    assert Policy((free, rule("bash", "rm *", "deny"))).anything("bash") == "ask"
    assert Policy((free, rule("bash", "rm *", "deny"), free)).anything("bash") == "allow"
    assert Policy((deny_all, listed)).anything("bash") == "deny"
    assert Policy((free,), ([rule("bash", "rm *", "ask")],)).anything("bash") == "ask"
    assert Policy((free,), (), Policy((free, deny_all))).anything("bash") == "deny"
    assert Policy((free,)).strictest("bash", ["x"], unclear=("bash", "external_directory")) == "allow"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([("*", "*", "allow")], "ask"),
        ([("un*", "*", "allow")], "ask"),
        ([("*", "*", "allow"), ("unconfined", "make *", "allow")], "allow"),
        ([("unconfined", "*", "allow"), ("*", "*", "allow")], "ask"),
        ([("*", "*", "deny")], "deny"),
    ],
)
def test_to_leave_the_box_takes_a_rule_that_names_it(
    rules: list[tuple[str, str, Action]], expected: Action
) -> None:
    """A rule for everything is no such word; what the user allowed for good is."""
    policy = Policy(tuple(Rule(permission=p, pattern=q, action=a) for p, q, a in rules))
    approved = [Approved("unconfined", "make *")]

    assert policy.verdict("unconfined", "make all") == expected
    assert policy.verdict("unconfined", "make all", approved) == ("deny" if expected == "deny" else "allow")


@pytest.mark.parametrize(
    ("rules", "path", "verdict"),
    [
        ({"*": "allow", "/top/private/*": "deny"}, "private/k", "deny"),
        ({"*": "allow", "/top/private/*": "deny"}, "../top/private/k", "deny"),
        ({"*": "allow", "/t*/private/*": "deny"}, "private/k", "deny"),
        ({"*": "allow", "/top/private/*": "deny"}, "public/k", "allow"),
        ({"/top/private/*": "deny", "*": "allow"}, "private/k", "allow"),
        ({"*": "allow", "/top/*": "deny", "private/*": "ask"}, "private/k", "ask"),
        ({"*": "deny", "/top/src/*": "allow"}, "src/k", "allow"),
        ({"*.py": "deny", "src/*": "allow"}, "src/a.py", "allow"),
        ({"*": "allow", "*/private/*": "deny"}, "private/k", "allow"),
        ({"*": "allow", "/top/*": "allow"}, ".git/config", "ask"),
    ],
)
def test_a_rule_may_name_a_path_of_the_project_absolutely(
    rules: dict[str, Action], path: str, verdict: Action
) -> None:
    """In the order of the rules, like any other; what is relative means what it meant, and a rule for the
    whole project does not open what steers the next run.
    """
    found = tuple(Rule(permission="edit", pattern=key, action=value) for key, value in rules.items())
    allowing = (Rule(permission="*", pattern="*", action="allow"),)
    assert Policy(found, top="/top").verdict("edit", path) == verdict
    bash = Policy((*found, *allowing), top="/top").verdict("bash", path)
    assert bash == "allow"
    if verdict == "deny":
        tightened = Policy(allowing, restrictions=(list(found),), top="/top")
        below = Policy(allowing, above=tightened, top="/top")
        assert [each.verdict("edit", path) for each in (tightened, below)] == ["deny", "deny"]
