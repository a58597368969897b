"""Which programs a change calls for."""

import pytest

from holdfast.config.checks import Check
from holdfast.tools.checks.commands import Changed, commands, concerned
from holdfast.tools.glob_pattern import BadGlob

A, B, JS = Changed("/p/a.py", "a.py"), Changed("/p/src/b.py", "src/b.py"), Changed("/p/c.js", "c.js")


@pytest.mark.parametrize(
    ("files", "matched"),
    [
        ((), [A, B, JS]),
        (("*.py",), [A, B]),
        (("src/**",), [B]),
        (("*.{js,ts}", "a.*"), [A, JS]),
        (("*.go",), []),
    ],
)
def test_globs(files: tuple[str, ...], matched: list[Changed]) -> None:
    """Seen from the top of the project."""
    assert concerned(Check(name="x", command=("x",), files=files), [A, B, JS]) == matched


def test_what_is_no_glob_is_an_error() -> None:
    """A check that silently never runs would be worse."""
    with pytest.raises(BadGlob, match="a brace is not closed"):
        concerned(Check(name="x", command=("x",), files=("*.py", "*.{js")), [A])


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
