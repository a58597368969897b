"""Which programs a change calls for."""

import pytest

from holdfast.config.checks import Check
from holdfast.tools.checks.commands import Changed, commands, concerned

A, B, JS = Changed("/p/a.py", "a.py"), Changed("/p/src/b.py", "src/b.py"), Changed("/p/c.js", "c.js")


@pytest.mark.parametrize(
    ("files", "matched"),
    [
        ((), [A, B, JS]),
        (("*.py",), [A, B]),
        (("src/**",), [B]),
        (("*.{js,ts}", "a.*"), [A, JS]),
        (("[",), []),
        (("*.go",), []),
    ],
)
def test_globs(files: tuple[str, ...], matched: list[Changed]) -> None:
    """Seen from the top of the project; what is no glob matches nothing."""
    assert concerned(Check(name="x", command=("x",), files=files), [A, B, JS]) == matched


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        (("x", "$FILES"), [["x", "/p/a.py", "/p/src/b.py"]]),
        (("x", "$FILE"), [["x", "/p/a.py"], ["x", "/p/src/b.py"]]),
        (("x", "--in=$FILE", "-q"), [["x", "--in=/p/a.py", "-q"], ["x", "--in=/p/src/b.py", "-q"]]),
        (("pytest",), [["pytest"]]),
    ],
)
def test_placeholders(command: tuple[str, ...], runs: list[list[str]]) -> None:
    """One run for all, for each, or whatever was changed."""
    assert commands(Check(name="x", command=command), [A, B]) == runs
    assert commands(Check(name="x", command=command), []) == []
