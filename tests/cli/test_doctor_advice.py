"""What `holdfast doctor` says besides its findings."""

import pytest

from holdfast.cli.doctor import print_report
from holdfast.store.report import Report


def test_advice_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A sound store whose server could be set up better says so, a line each."""
    print_report(Report(1, 2, (), ("set a standby", "raise it")), "sqlite:///x", repair=False)

    assert capsys.readouterr().out == (
        "advice: set a standby\nadvice: raise it\nsqlite:///x: 1 sessions, 2 records, sound\n"
    )
