"""What a host can do is found by running something in a box, and kept for the boot."""

import os
import sys
from pathlib import Path

import pytest

from holdfast.location.box import host_level
from holdfast.location.box.host_level import HostLevel
from tests.location.box.users import lesser

pytestmark = pytest.mark.needs("box")

BASE = getattr(sys, "_base_executable", sys.executable)


@pytest.mark.parametrize(
    ("lacks", "expected"),
    [
        ((), HostLevel("full")),
        (("444=ENOSYS",), HostLevel("full")),
        (("unshare=EPERM",), HostLevel("partial", "box: unshare: Operation not permitted")),
        (("mount=EACCES",), HostLevel("partial", "box: mount /: Permission denied")),
        (
            ("unshare=EPERM", "444=ENOSYS"),
            HostLevel(
                "none",
                "box: unshare: Operation not permitted; "
                "box: this kernel has neither namespaces for us nor Landlock",
            ),
        ),
        (
            ("prctl:22=EINVAL",),
            HostLevel("none", "box: seccomp: Invalid argument; box: seccomp: Invalid argument"),
        ),
    ],
    ids=["this one", "no Landlock", "no user namespaces", "no mounts", "an old kernel", "no seccomp"],
)
def test_levels(lacks: tuple[str, ...], expected: HostLevel) -> None:
    """Each host by what it lacks, with what stands in the way."""
    python = (*lesser(os.geteuid(), *lacks), BASE) if lacks else ()

    assert host_level.measured(python) == expected


def test_it_is_measured_once_a_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is a private file; another boot, and a file that is none, measure again."""
    asked: list[int] = []

    def measured() -> HostLevel:
        asked.append(1)
        return HostLevel("partial", "why")

    monkeypatch.setattr(host_level, "measured", measured)
    kept = tmp_path / "box-level.json"

    assert [host_level.host_level(tmp_path) for _ in range(3)] == [HostLevel("partial", "why")] * 3
    assert (len(asked), kept.stat().st_mode & 0o777) == (1, 0o600)

    kept.write_text("nonsense")
    host_level.host_level(tmp_path)
    assert len(asked) == 2

    monkeypatch.setattr(host_level, "_key", lambda: "another boot")
    host_level.host_level(tmp_path)
    assert len(asked) == 3


@pytest.mark.ci
def test_a_launcher_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The question has a bound."""
    monkeypatch.setattr(host_level, "WAIT_S", 0.1)
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o700)

    found = host_level.measured((str(sleeper),))

    assert (found.level, "no box was built" in found.why) == ("none", True)
