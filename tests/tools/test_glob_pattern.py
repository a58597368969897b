"""Globs over paths."""

import time

import pytest

from holdfast.tools.glob_pattern import BadGlob, last_name, matcher


@pytest.mark.parametrize(
    ("pattern", "meant", "not_meant"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "py"]),
        ("a?c", ["abc", "x/abc"], ["ac", "a/c", "abbc"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/x/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py", "lib/a.py"]),
        ("**/test/**/a*b*c.py", ["test/abc.py", "x/test/y/a1b2c.py"], ["test/acb.py", "a/b/c.py"]),
        ("**/*", ["a", "a/b"], []),
        ("src/**", ["src/a", "src/b/c"], ["lib/a"]),
        ("*.{ts,tsx}", ["a.ts", "b/a.tsx"], ["a.t"]),
        ("{src,test}/{a,b/{c,d}}.py", ["src/a.py", "test/b/d.py"], ["src/c.py"]),
        ("[a-c]x[!0-9]", ["axz", "d/bxy"], ["dxz", "ax1"]),
        ("[]x]", ["]", "x"], ["a"]),
        (r"a\*b", ["a*b"], ["axb"]),
        ("a.b", ["a.b"], ["axb"]),
        ("./src/a", ["src/a"], ["a"]),
        ("**/a/**/a/b", ["a/a/b", "x/a/y/a/b", "a/a/a/b"], ["a/b"]),
    ],
)
def test_what_a_glob_means(pattern: str, meant: list[str], not_meant: list[str]) -> None:
    """Each row: a glob, paths that it means, and paths that it does not."""
    is_meant = matcher(pattern)
    assert [path for path in meant + not_meant if is_meant(path)] == meant


@pytest.mark.parametrize("pattern", ["{a", "{a,{b}", "[z-a]", "{a,b}" * 8])
def test_what_is_no_glob_is_refused(pattern: str) -> None:
    """A brace that is not closed, a range backwards, braces that stand for too many patterns."""
    with pytest.raises(BadGlob):
        matcher(pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("*a" * 60 + "b", "a" * 4000), ("**/a/" * 60 + "b", "a/" * 1000 + "c"), ("a*" * 60 + "/b", "a" * 4000)],
)
def test_no_glob_takes_for_ever(pattern: str, path: str) -> None:
    """A glob and a name made for each other cost milliseconds: it has no exponent."""
    began = time.process_time()
    assert not matcher(pattern)(path)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("src/**/*.py", "*.py"),
        ("*.{a,b}", "*.{a,b}"),
        ("src/{a/b,c}", None),
        ("src/**", None),
        ("src/", None),
        ("a\\/b", None),
    ],
)
def test_the_last_name(pattern: str, name: str | None) -> None:
    """It leaves out no path that the glob means."""
    assert last_name(pattern) == name
