"""What the box stopped is found in the output, by a path that it refuses and that the user could use."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.location.box import denial
from holdfast.location.box.denial import Stop, stops
from holdfast.location.box.policy import BoxPolicy


@pytest.fixture
def root() -> Iterator[Path]:
    # Not below `tmp_path`: the quick tests have that in /dev/shm, of which the box has its own.
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        made = Path(os.path.realpath(folder))
        for name in ("work/.git", "outside", "hidden"):
            (made / name).mkdir(parents=True)
        for name in ("work/.git/config", "outside/file", "hidden/key", "work/inside"):
            (made / name).touch()
        yield made


def found(root: Path, output: str, *, unreachable: int = 0) -> list[str]:
    policy = BoxPolicy(
        mode="workspace",
        write=(str(root / "work"),),
        hidden=(str(root / "hidden"),),
        protected=(str(root / "work" / ".git" / "config"),),
    )
    text = output.replace("ROOT", str(root))
    seen = stops(text, policy, cwd=str(root / "work"), home=str(root), unreachable=unreachable)
    return [str(stop).replace(str(root), "ROOT") for stop in seen]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("touch: cannot touch 'ROOT/outside/new': Read-only file system", "a write to ROOT/outside/new"),
        ("sh: 1: cannot create ROOT/outside/new: Read-only file system", "a write to ROOT/outside/new"),
        ("ROOT/outside/file: 1: cannot create ROOT/outside/n: EROFS", "a write to ROOT/outside/n"),
        ("ROOT/outside/file: Permission denied", "a write to ROOT/outside/file"),
        ("OSError: [Errno 30] Read-only file system: 'ROOT/outside/file'", "a write to ROOT/outside/file"),
        ("Error: EROFS: read-only file system, open 'ROOT/outside/file'", "a write to ROOT/outside/file"),
        ("mkdir ../outside/x: read-only file system", "a write to ROOT/outside/x"),
        (
            "error: could not lock config file .git/config: Device or resource busy",
            "a write to ROOT/work/.git/config",
        ),
        (
            "npm error code EROFS\nnpm error syscall mkdir\nnpm error path ROOT/outside/x",
            "a write to ROOT/outside/x",
        ),
        ("failed to write `ROOT/outside/x`\n\nCaused by:\n  Read-only file system (os error 30)", None),
        (
            "failed to write `ROOT/outside/x`\nCaused by:\n  Read-only file system (os error 30)",
            "a write to ROOT/outside/x",
        ),
        ("cat: ROOT/hidden/key: Permission denied", "a read of ROOT/hidden/key"),
        ("cat: '~/hidden/key': Permission denied.", "a read of ROOT/hidden/key"),
        ("ls: cannot open directory 'ROOT/hidden': Permission denied", "a read of ROOT/hidden"),
        ("dial unix ROOT/outside/s: connect: permission denied", "a connection to ROOT/outside/s"),
        # Other failures:
        ("touch: cannot touch 'ROOT/outside/new': No such file or directory", None),
        ("cat: ROOT/work/inside: Permission denied", None),
        ("bash: ./inside: Permission denied", None),
        ("rm: cannot remove 'x': Device or resource busy", None),
        ("Permission denied (publickey).", None),
        ("curl: (7) Failed to connect to localhost port 9: Connection refused", None),
        ("mount: /proc/self/mountinfo: Operation not permitted", None),
        ("the file system is read-only; ROOT/outside/file", None),
        ("", None),
        ("EACCES \0 \udcff '", None),
    ],
)
def test_a_line(root: Path, output: str, expected: str | None) -> None:
    """One line of a program, and what the box stopped by it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "outside" / "s"))

        assert found(root, output) == ([] if expected is None else [expected])


def test_what_the_user_could_not_do_either_is_no_stop(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside it would fail in the same way."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    assert found(root, "touch: cannot touch 'ROOT/outside/file': Read-only file system") == []
    assert found(root, "cat: ROOT/hidden/key: Permission denied") == []


def test_the_network_is_what_the_kernel_counted(root: Path) -> None:
    """Whatever the output says."""
    assert found(root, "curl: (6) Could not resolve host: example.com") == []
    assert found(root, "all is well", unreachable=2) == ["the network"]


def test_each_stop_is_named_once_and_only_some(root: Path) -> None:
    """A program that tries a thousand files is not repeated."""
    line = "touch: cannot touch 'ROOT/outside/{}': Read-only file system\n"

    assert found(root, line.format("a") * 100) == ["a write to ROOT/outside/a"]
    assert len(found(root, "".join(line.format(n) for n in range(100)))) == denial.STOPS_MAX


def test_only_the_ends_of_a_long_output_are_looked_at(root: Path) -> None:
    """The time is bounded, also for one endless line."""
    line = f"\ntouch: cannot touch '{root}/outside/a': Read-only file system\n"
    much = "x" * denial.TEXT_MAX

    assert (
        found(root, f"{line}{much}{much}")
        == found(root, f"{much}{much}{line}")
        == ["a write to ROOT/outside/a"]
    )
    assert found(root, f"{much}{line}{much}") == []
    assert found(root, "permission denied " + "a/" * 1_000_000) == []


def test_a_stop_has_words_for_each_kind() -> None:
    """As the model and the user read them."""
    said = [str(Stop(kind, "/x")) for kind in ("write", "read", "socket", "network")]

    assert said == ["a write to /x", "a read of /x", "a connection to /x", "the network"]
