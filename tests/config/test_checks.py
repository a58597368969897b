"""Which checks the settings stand for."""

from typing import Any

import msgspec
import pytest

from holdfast.config.checks import TIMEOUT_MS, Check, checks
from holdfast.schema.config import Config


def found(**settings: Any) -> tuple[Check, ...]:
    """The checks of some settings."""
    return checks(msgspec.convert(settings, Config))


def test_checks_and_formatters() -> None:
    """OpenCode's formatters are checks that rewrite, and come first."""
    assert found(
        checks={
            "types": {
                "command": ["mypy", "$FILES"],
                "files": ["*.py"],
                "timeout": 9,
                "environment": {"A": "b"},
            },
            "fmt": {"command": ["fmt", "$FILE"], "formats": True},
        },
        formatter={"pretty": {"command": ["pretty", "$FILE"], "extensions": [".js", ".ts"]}},
    ) == (
        Check(name="pretty", command=("pretty", "$FILE"), files=("*.js", "*.ts"), formats=True),
        Check(name="fmt", command=("fmt", "$FILE"), formats=True, timeout_ms=TIMEOUT_MS),
        Check(
            name="types", command=("mypy", "$FILES"), files=("*.py",), timeout_ms=9, environment={"A": "b"}
        ),
    )


def test_what_is_off() -> None:
    """A switch is enough, also for a formatter; names without a command stand for nothing of ours."""
    one = {"command": ["x"], "extensions": [".x"]}
    assert found() == found(formatter=True) == found(formatter=False) == ()
    assert found(formatter={"a": {"disabled": True}, "b": {"extensions": [".b"]}}) == ()
    assert found(formatter={"a": one}, checks={"a": {"disabled": True}}) == ()


@pytest.mark.parametrize("entry", [{}, {"command": []}, {"command": ["x"], "timeout": 0}])
def test_what_could_never_work_is_refused(entry: Any) -> None:
    """When it is read."""
    with pytest.raises(msgspec.ValidationError):
        found(checks={"a": entry})
