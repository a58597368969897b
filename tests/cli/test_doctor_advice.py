"""What `holdfast doctor` says besides its findings."""

import pytest

from holdfast.cli.doctor import print_report
from holdfast.location.shadow import place
from holdfast.location.shadow.repository import Shadow
from holdfast.store.report import Report
from tests.cli.conftest import Shell


def test_advice_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A sound store whose server could be set up better says so, a line each."""
    print_report(Report(1, 2, (), ("set a standby", "raise it")), "sqlite:///x", repair=False)

    assert capsys.readouterr().out == (
        "advice: set a standby\nadvice: raise it\nsqlite:///x: 1 sessions, 2 records, sound\n"
    )


@pytest.mark.ci
def test_snapshots_for_nobody_are_named(shell: Shell) -> None:
    """With the room they take and what to remove; a store without sessions tells nothing."""
    shadow = Shadow(place.git_dir(shell.home / ".local/share/holdfast", "global", shell.folder), shell.folder)
    shadow.keep_contents(place.folder_of("ses_gone"), [b"x"])
    shell.make(lambda hf: hf.sessions.list())
    assert "ses_gone" not in shell("doctor").out
    session = shell.conversation()
    shadow.keep_contents(place.folder_of(session), [b"y"])

    found = shell("doctor").out
    (told,) = [line for line in found.splitlines() if line.startswith("advice")]
    assert told.startswith(f"advice: the snapshots of {shell.folder} take 0.")
    assert "of 1 sessions that this store does not have (ses_gone)" in told
    assert f"remove {shadow.git_dir}/refs/sessions/ID" in told
    (orphans,) = shell("doctor", "--format", "json").json()["orphans"]
    assert (orphans["sessions"], orphans["is_gone"]) == (["ses_gone"], False)
    assert shell("info", "--format", "json").json()["snapshots"]["worktrees"] == 1
