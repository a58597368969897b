"""What stands in the repository: sizes, docstrings, no machine's paths or hosts, and what CI calls."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.house.parsing import parsed

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LINES_MAX = 500

# A host that serves packages, by the words that such hosts carry, or an option that names one.
REGISTRY = re.compile(
    r"https?://[^\s/\"'<>]*(?:pypi|npmjs|artifactory|nexus|mirror|registry)[^\s/\"'<>]*"
    r"|\bpythonhosted\.org|https?://\S+/simple\b|--(?:extra-)?index-url[ =]\S|--find-links[ =]\S"
)
# A directory of the machine on which something was written. Tests may invent people with these names.
HOME = re.compile(r"(?<![\w.~-])/(?:root|(?:home|Users)/(?!(?:alice|bob|me|user|you)\b)\w[\w.-]*)/")

# What git writes where two lines of work did not merge by themselves.
CONFLICT = re.compile(r"^(?:<{7} |={7}$|>{7} )")


def tracked() -> list[Path]:
    listed = subprocess.run(
        # A checkout may belong to another user than the one who tests it.
        [
            "git",
            "-c",
            f"safe.directory={ROOT}",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_source_file_is_too_long() -> None:
    """A file of more than 500 lines is more than one thing."""
    counted = {str(path.relative_to(ROOT)): len(path.read_bytes().splitlines()) for path in SOURCES}

    assert {name: lines for name, lines in counted.items() if lines > LINES_MAX} == {}


@pytest.mark.ci
def test_every_module_says_what_it_owns() -> None:
    """Each source file opens with a docstring."""
    silent = [str(path.relative_to(ROOT)) for path in SOURCES if not ast.get_docstring(parsed(path))]

    assert silent == []


@pytest.mark.ci
@pytest.mark.needs("git")
def test_no_tracked_file_names_a_registry_or_a_home_or_is_half_merged() -> None:
    """Nothing in the repository depends on, or tells about, the machine where it was written, or how."""
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if any(each.search(line) for each in (REGISTRY, HOME, CONFLICT)) or f"{ROOT}/" in line:
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")

    assert found == []


@pytest.mark.needs("git")
def test_the_other_lock_stays_untracked() -> None:
    """`uv.lock` names hosts and is never part of the repository."""
    assert "uv.lock" not in {path.name for path in tracked()}


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("https:" + "//packages.mirror.example/x", True),
        ("--index-url" + " somewhere", True),
        ("https://host.example" + "/simple/", True),
        ("/home" + "/carol/project", True),
        ("see /root" + "/.cache", True),
        ("/home/alice/project", False),
        ("the tree's a/root/b", False),
        ("~/.config/opencode", False),
        ("https://host.example/simplest", False),
    ],
)
def test_the_patterns_tell_machines_from_prose(text: str, bad: bool) -> None:
    """The patterns above match what they are meant for and leave ordinary text alone."""
    assert bool(REGISTRY.search(text) or HOME.search(text)) is bad


def test_the_lock_is_pinned_hashed_and_without_addresses() -> None:
    """Every line of `requirements.lock` is an exact version with hashes, wherever it is fetched from."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if entry and not entry.startswith("#")]
    pinned = re.compile(r"[a-z0-9-]+==\S+ .*\n +--hash=sha256:[0-9a-f]{64}\b")

    assert "/" not in text
    assert [entry for entry in entries if not pinned.match(entry)] == []


def test_ci_calls_the_commands_of_the_readme() -> None:
    """`.ci/run` runs `scripts/check` and `scripts/test`, as the README tells people to, and nothing else."""
    commands = re.findall(r"^scripts/.*$", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE)
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()

    assert commands == ["scripts/check", "scripts/test"]
    assert [c for c in commands if not any(line.split("#")[0].strip() == c for line in readme)] == []


@pytest.mark.parametrize(
    "name", [*(f"scripts/{name}" for name in ("install", "demo", "check", "test", "bench")), ".ci/run"]
)
def test_scripts_can_be_run(name: str) -> None:
    """Each script is executable and stops at the first failing command."""
    path = ROOT / name

    assert os.access(path, os.X_OK)
    assert "\nset -euo pipefail\n" in path.read_text(encoding="utf-8")
