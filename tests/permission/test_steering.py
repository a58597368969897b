"""Paths that steer the next run need a rule that names them."""

import pytest

from holdfast.permission import steering
from holdfast.permission.policy import Approved, Policy
from holdfast.schema.permission import Rule


def rule(pattern: str, action: str = "allow", permission: str = "edit") -> Rule:
    """A rule in a line."""
    return Rule(permission=permission, pattern=pattern, action=action)  # type: ignore[arg-type]


EVERYTHING = rule("*", permission="*")


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("src/main.py", set()),
        ("README.md", set()),
        (".gitignore", set()),
        (".github/workflows/ci.yml", set()),
        (".git/hooks/pre-commit", {".git"}),
        (".git", {".git"}),
        ("sub/.git/config", {".git"}),
        ("/other/repo/.git/config", {".git"}),
        ("../beside/.opencode/agent/a.md", {".opencode"}),
        (".holdfast/plugins/a.py", {".holdfast"}),
        (".holdfast/plans/next.md", set()),
        (".opencode/plans/deep/next.md", set()),
        (".holdfast/plans", set()),
        (".holdfast/plans/../plugins/a.py", {".holdfast"}),
        (".holdfast/plans/.git/config", {".git"}),
        (".holdfast/plans/AGENTS.md", {"agents.md"}),
        (".git/plans/a.md", {".git"}),
        (".claude/skills/s/SKILL.md", {".claude"}),
        ("sub/.agents/skills/s/run.sh", {".agents"}),
        (".claude/plans/a.md", {".claude"}),
        ("sub/CONTEXT.md", {"context.md"}),
        ("agents/a.py", set()),
        ("src/../AGENTS.md", {"agents.md"}),
        ("deep/CLAUDE.md", {"claude.md"}),
        ("opencode.json", {"opencode.json"}),
        ("a/holdfast.jsonc", {"holdfast.jsonc"}),
        ("my-opencode.json", set()),
        ("AGENTS.md.bak", set()),
        ("AGENTS.md/x", set()),
        # As other file systems read a name.
        (".GIT/config", {".git"}),
        ("Agents.MD", {"agents.md"}),
        (".g\u200cit/config", {".git"}),
        (".git./config", {".git"}),
        (".git ::$INDEX_ALLOCATION/config", {".git"}),
        ("GIT~1/config", {".git"}),
        (".holdfast\\plugins\\a.py", {".holdfast"}),
        ("\uff21GENTS.md", {"agents.md"}),
        ("", set()),
        ("*", set()),
    ],
)
def test_a_path_steers_by_its_names(path: str, names: set[str]) -> None:
    """Settings, instructions and what git obeys, in any folder; plans do not."""
    assert steering.steered(path) == names


@pytest.mark.parametrize(
    ("pattern", "path", "named"),
    [
        ("*", "AGENTS.md", False),
        ("**", ".git/config", False),
        ("*.md", "AGENTS.md", False),
        ("*GENTS.md", "AGENTS.md", False),
        ("src/*", "src/AGENTS.md", False),
        ("AGENTS.md", "AGENTS.md", True),
        ("agents.md", "AGENTS.md", True),
        ("*AGENTS.md", "deep/AGENTS.md", True),
        ("*/AGENTS.md", "deep/AGENTS.md", True),
        ("MY-AGENTS.md", "AGENTS.md", False),
        (".git*", ".git/config", False),
        (".gi?/*", ".git/config", False),
        (".git/*", ".git/config", True),
        ("*/.holdfast/*", "sub/.holdfast/a", True),
        (".github/*", ".git/config", False),
        ("opencode.json*", "opencode.jsonc", False),
        ("opencode.jsonc*", "opencode.jsonc", True),
        (".holdfast/*", ".holdfast/holdfast.json", True),
        ("*holdfast.json", ".holdfast/holdfast.json", False),
        (".holdfast/*", ".holdfast/x/.git/config", False),
        (".holdfast/*.git/*", ".holdfast/x/.git/config", True),
    ],
)
def test_a_pattern_names_a_path_by_its_segments(pattern: str, path: str, named: bool) -> None:
    """A wildcard that happens to match names nothing; each folder, or else the file, must stand there."""
    assert steering.names(pattern, path) is named


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ([EVERYTHING], "src/a.py", "allow"),
        ([EVERYTHING], "AGENTS.md", "ask"),
        ([rule("*")], ".git/config", "ask"),
        ([EVERYTHING, rule("AGENTS.md")], "AGENTS.md", "allow"),
        ([rule("AGENTS.md"), EVERYTHING], "AGENTS.md", "allow"),
        ([EVERYTHING, rule("AGENTS.md", permission="*")], "AGENTS.md", "allow"),
        ([EVERYTHING, rule("AGENTS.md", permission="bash")], "AGENTS.md", "ask"),
        ([EVERYTHING, rule("AGENTS.md"), rule("AGENTS.md", "ask"), rule("*")], "AGENTS.md", "ask"),
        ([rule("AGENTS.md", "deny"), rule("*")], "AGENTS.md", "ask"),
        ([rule("AGENTS.md"), rule("*", "deny")], "AGENTS.md", "deny"),
        ([rule("AGENTS.md"), rule("*", "ask")], "AGENTS.md", "ask"),
        ([EVERYTHING, rule(".holdfast/*")], ".holdfast/plugins/a.py", "allow"),
        ([EVERYTHING, rule(".holdfast/*")], ".opencode/plugins/a.py", "ask"),
        ([rule("*", "deny"), rule(".holdfast/plans/*.md")], ".holdfast/plans/a.md", "allow"),
    ],
)
def test_a_general_allow_does_not_suffice(rules: list[Rule], path: str, expected: str) -> None:
    """Nor is anything else softened: what the rules ask or deny stays so."""
    assert Policy(tuple(rules)).verdict("edit", path) == expected


def test_only_edits_are_judged_so() -> None:
    """To read what steers is no question."""
    assert [Policy((EVERYTHING,)).verdict(each, "AGENTS.md") for each in ("read", "bash")] == ["allow"] * 2


def test_an_approval_must_name_the_path_too() -> None:
    """An "always" for edits in general, said of another file, is no word about this one."""
    policy = Policy((EVERYTHING,))
    asked = [Policy((rule("*", "ask"),)), policy]
    for each in asked:
        assert each.verdict("edit", "AGENTS.md", [Approved("edit", "*")]) == "ask"
        assert each.verdict("edit", "AGENTS.md", [Approved("edit", "AGENTS.md")]) == "allow"
    assert asked[0].verdict("edit", "src/a.py", [Approved("edit", "*")]) == "allow"


def test_a_child_needs_the_word_above_it_too() -> None:
    """Its own rule does not suffice where the session above has none."""
    child = Policy((EVERYTHING, rule("AGENTS.md")), above=Policy((EVERYTHING,)))
    assert child.verdict("edit", "AGENTS.md") == "ask"


def test_a_link_is_judged_by_both_names() -> None:
    """As asked and as resolved: a harmless name that leads to one that steers, and the other way round."""
    policy = Policy((EVERYTHING,))
    assert policy.strictest("edit", ["docs/notes.md", "AGENTS.md"]) == "ask"
    assert policy.strictest("edit", ["docs/notes.md", "docs/real.md"]) == "allow"


def test_always_is_for_the_paths_that_steer() -> None:
    """The tool offers everything; saved are these paths, and nothing for a name with a wildcard."""
    assert steering.savable("edit", ["src/a.py"], ["*"]) == ["*"]
    assert steering.savable("edit", ["AGENTS.md"], ["*"]) == ["AGENTS.md"]
    assert steering.savable("edit", [".git/*"], ["*"]) == []
    assert steering.savable("read", ["AGENTS.md"], ["*"]) == ["*"]
