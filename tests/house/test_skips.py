"""The rule on skipped tests in `tests/conftest.py`, seen from outside: pytest over a small suite."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
CONFIG = (
    f"[pytest]\npythonpath = {CONFTEST.parents[1]}\n"
    "markers =\n    quick\n    ci\n    long\n    property\n    needs(*tools)\n"
)
ABSENT = '@pytest.mark.needs("no-such-tool")\ndef test_absent(): raise AssertionError\n'


def run(where: Path, body: str, *, ci: bool) -> tuple[int, str]:
    shutil.copy(CONFTEST, where / "conftest.py")
    (where / "pytest.ini").write_text(CONFIG, encoding="utf-8")
    (where / "test_it.py").write_text(f"import pytest\n{body}def test_passes(): pass\n", encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=where,
        env=env | {"HOLDFAST_CI": "1"} if ci else env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.ci
def test_an_absent_tool_is_a_visible_skip(tmp_path: Path) -> None:
    """A test whose tool is absent is skipped, and CI accepts that."""
    code, said = run(tmp_path, ABSENT, ci=True)

    assert code == pytest.ExitCode.OK
    assert "1 passed, 1 skipped" in said


@pytest.mark.ci
def test_a_model_that_cannot_be_fetched_is_a_visible_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test whose model pip cannot have is skipped with pip's reason, and CI accepts that."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    body = '@pytest.mark.needs("model:smollm2")\ndef test_absent(): raise AssertionError\n'

    code, said = run(tmp_path, body, ci=True)

    assert code == pytest.ExitCode.OK
    assert "1 passed, 1 skipped" in said


@pytest.mark.ci
def test_other_skips_fail_ci(tmp_path: Path) -> None:
    """A skip for a tool that is there, one for another reason and a skipped module each fail a CI run."""
    body = (
        'def test_there(): pytest.skip("needs sh, which is not on PATH")\n'
        '@pytest.mark.skip(reason="later")\ndef test_later(): pass\n'
    )
    module = 'import pytest\npytest.skip("not here", allow_module_level=True)\n'
    (tmp_path / "test_module.py").write_text(module, encoding="utf-8")

    code, said = run(tmp_path, body, ci=True)

    assert code == pytest.ExitCode.TESTS_FAILED
    assert said.count("FAILED, skipped without an absent tool: ") == 3


@pytest.mark.ci
def test_outside_ci_such_skips_are_only_shown(tmp_path: Path) -> None:
    """On a developer's machine the same skip is a warning."""
    code, said = run(tmp_path, '@pytest.mark.skip(reason="later")\ndef test_later(): pass\n', ci=False)

    assert code == pytest.ExitCode.OK
    assert "skipped; .ci/run would fail: test_it.py::test_later" in said
