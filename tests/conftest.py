"""What every test runs under: a home of its own, one async backend, and the rule on skipped tests.

A test may be skipped for one reason only: a program that it needs is absent, said as
`@pytest.mark.needs("git")`. Any other skip, or a skip for a program that is there, fails the run under
`.ci/run` (HOLDFAST_CI=1), because a suite that quietly skips proves nothing.
"""

import os
import re
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import hypothesis
import pytest

IN_CI = os.environ.get("HOLDFAST_CI") == "1"
MARKS = ("long", "ci", "quick")  # the first that a test carries is the one that counts
NEEDS = re.compile(r"(?:Skipped: )?needs (\S+), which is not on PATH")

# Two busy cores make a deadline a coin toss; CI replays the same examples each time.
hypothesis.settings.register_profile("holdfast", deadline=None, derandomize=IN_CI)
hypothesis.settings.load_profile("holdfast")

mark_of: dict[str, str] = {}
seconds: defaultdict[str, float] = defaultdict(float)
bad_skips: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """Keep tests, and the programs that they start, from the person's settings, data and git identity."""
    home = Path(tempfile.mkdtemp(prefix="holdfast-home-"))
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    for name in list(os.environ):
        if name.startswith(("HOLDFAST_", "OPENCODE_", "XDG_", "GIT_")):
            patch.delenv(name)
    patch.setenv("HOME", str(home))
    (home / "run").mkdir(mode=0o700)
    patch.setenv("XDG_RUNTIME_DIR", str(home / "run"))  # platformdirs warns where there is none
    patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        patch.setenv(f"GIT_{role}_NAME", "Tester")
        patch.setenv(f"GIT_{role}_EMAIL", "tester@example.invalid")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every unmarked test quick, before `-m` selects."""
    for item in items:
        mark = next((mark for mark in MARKS if item.get_closest_marker(mark)), None)
        if mark is None:
            item.add_marker("quick")
        mark_of[item.nodeid] = mark or "quick"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for tool in marker.args:
            if shutil.which(tool) is None:
                pytest.skip(f"needs {tool}, which is not on PATH")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    note_skip(report)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[mark_of[report.nodeid]] += report.duration
    note_skip(report)


def note_skip(report: pytest.CollectReport | pytest.TestReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    needs = NEEDS.fullmatch(reason)
    if needs is None or shutil.which(needs[1]) is not None:
        bad_skips.append(f"{report.nodeid}: {reason}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if IN_CI and bad_skips and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    spent = ", ".join(f"{mark} {seconds[mark]:.1f} s" for mark in reversed(MARKS) if mark in seconds)
    if spent:
        terminalreporter.write_line(f"time in tests: {spent}")
    if not bad_skips:
        return
    verdict = "FAILED, skipped without an absent tool" if IN_CI else "skipped; .ci/run would fail"
    for skip in bad_skips:
        terminalreporter.write_line(f"{verdict}: {skip}", red=True)
