"""The launcher: what a command finds in the box, and that nothing runs where the box cannot be built."""

import fcntl
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.location.box.policy import BoxPolicy, CacheLayer
from tests.location.box.boxed import Ran, run
from tests.location.box.users import folder_of, lesser

pytestmark = pytest.mark.needs("box")

BASE = getattr(sys, "_base_executable", sys.executable)


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder outside /tmp, with `work` (writable) and `temporary` in it."""
    with folder_of(os.geteuid()) as made:
        for name in ("work", "temporary", "outside"):
            (made / name).mkdir()
        yield made


def policy_of(root: Path) -> BoxPolicy:
    return BoxPolicy(mode="workspace", write=(str(root / "work"),), temporary=str(root / "temporary"))


def sh(root: Path, command: str, **changes: object) -> Ran:
    return run(replace(policy_of(root), **changes), command, cwd=root / "work")


def test_a_command_writes_in_its_worktree_and_nowhere_else(root: Path) -> None:
    """Its files are there afterwards, its status is its own, and the report says that the box was built."""
    ran = sh(root, "echo text > made; cat made; echo lost > ../outside/made; exit 7")

    assert (ran.code, ran.out, ran.report.ready) == (7, "text\n", True)
    assert "Read-only file system" in ran.error
    assert (root / "work" / "made").read_text() == "text\n"
    assert list((root / "outside").iterdir()) == []


def test_a_command_that_a_signal_ends_has_a_shells_status(root: Path) -> None:
    """128 and the number."""
    assert sh(root, "kill -TERM $$").code == 143


def test_a_program_that_is_not_there_is_no_failure_of_the_box(root: Path) -> None:
    """127 and 126, as from a shell, with a report that the box was built."""
    (root / "work" / "plain").write_text("no program")
    ran = run(policy_of(root), ["no-such-program"], cwd=root / "work")
    other = run(policy_of(root), ["./plain"], cwd=root / "work")

    assert (ran.code, ran.error, ran.report.ready) == (127, "no-such-program: not found\n", True)
    assert (other.code, other.error, other.report.ready) == (126, "./plain: Permission denied\n", True)


def test_starting_leaves_no_trace_in_the_worktree(root: Path) -> None:
    """No file appears, also where protected and pinned names are missing."""
    work = root / "work"
    names = tuple(str(work / name) for name in (".git", ".git/hooks", ".holdfast", "AGENTS.md"))

    ran = sh(root, "true", pinned=names[:1], protected=names[1:], hidden=(str(work / ".env"),))

    assert (ran.code, ran.error) == (0, "")
    assert list(work.iterdir()) == []


def test_only_the_standard_descriptors_are_open(root: Path) -> None:
    """Neither the orders nor the report reach the command."""
    assert sh(root, "ls /proc/self/fd").out.split() == ["0", "1", "2", "3"]  # 3 is what `ls` reads.


def test_a_command_has_the_environment_that_it_was_given(root: Path) -> None:
    """Also what can be read of other processes in the box holds nothing of the owner's."""
    ran = run(policy_of(root), "cat /proc/[0-9]*/environ 2>&- | tr '\\0' '\\n'", cwd=root / "work")

    names = {line.partition("=")[0] for line in ran.out.splitlines()}
    given = {"PATH", "HOME", "TMPDIR", "npm_config_fetch_retries", "PIP_RETRIES", "CARGO_NET_OFFLINE"}
    assert names - {"PWD", "OLDPWD", "_", "SHLVL"} == given


def test_temporary_files_have_a_place_at_two_paths(root: Path) -> None:
    """`/tmp` is the session's own folder, and what lies there is at the folder's path too, in and out."""
    ran = sh(root, 'echo x > /tmp/a; cat "$TMPDIR/a"; ls -A /tmp; echo y > /dev/shm/b')

    assert (ran.code, ran.out, ran.error) == (0, "x\na\n", "")
    assert (root / "temporary" / "a").read_text() == "x\n"


def test_a_worktree_in_tmp_is_there_while_tmp_is_covered() -> None:
    """Its neighbours are not; a command cannot lead the next start astray by moving the way to it."""
    with folder_of(os.geteuid(), "/tmp") as root:
        for name in ("work", "temporary"):
            (root / name).mkdir()
        (root / "neighbour").touch()
        ran = sh(root, "touch made /tmp/other; ls ..; mv /tmp/holdfast-* /tmp/away; touch ../lost")
        again = sh(root, "ls")

        assert (ran.out, again.out, again.error) == ("temporary\nwork\n", "made\n", "")
        assert "Device or resource busy" in ran.error
        assert sorted(path.name for path in root.iterdir()) == ["neighbour", "temporary", "work"]


@pytest.mark.parametrize(
    "name", [b"with space", b"new\nline", b"not-utf8-\xff", b"comma,colon:equals=", b"-dash", b"\xe4\xbd\xa0"]
)
def test_a_path_may_hold_anything(root: Path, name: bytes) -> None:
    """A worktree, and a hidden file in it, are what they are called."""
    work = root / os.fsdecode(name)
    work.mkdir()
    (work / "secret").write_text("secret")
    policy = replace(policy_of(root), write=(str(work),), hidden=(str(work / "secret"),))

    ran = run(policy, "echo x > made; cat secret; echo $?", cwd=work)

    assert (ran.out, (work / "made").read_text()) == ("1\n", "x\n")


def test_of_two_entries_the_longer_path_holds(root: Path) -> None:
    """Hidden below writable is hidden, writable below hidden is writable, and at one path hidden wins."""
    work, outside = root / "work", root / "outside"
    for folder in (work / "private", outside / "open", outside / "shown"):
        folder.mkdir()
        (folder / "file").write_text("text")

    ran = sh(
        root,
        f"cat private/file; cd {outside}; cat open/file && echo new > open/file; cat shown/file; "
        f"echo x > shown/file; ls {outside}; cat {root}/both/file",
        write=(str(work), str(outside / "open"), str(root / "both")),
        hidden=(str(work / "private"), str(outside), str(root / "both")),
        revealed=(str(outside / "shown"),),
    )

    assert ran.out == "texttext"
    assert (outside / "open" / "file").read_text() == "new\n"
    assert (outside / "shown" / "file").read_text() == "text"
    assert ran.error.count("Permission denied") >= 2


@pytest.mark.parametrize("what", ["worktree", "above it", "hidden", "temporary"])
def test_a_link_in_the_place_of_a_folder_ends_the_start(root: Path, what: str) -> None:
    """Between the policy and the start another process exchanged a folder for a link: nothing runs."""
    made = {"worktree": "work", "hidden": "outside", "temporary": "temporary", "above it": "above"}[what]
    (root / "above" / "work").mkdir(parents=True)
    write = root / "above" / "work" if what == "above it" else root / "work"
    policy = replace(policy_of(root), write=(str(write),), hidden=(str(root / "outside"),))
    (root / made).rename(root / "elsewhere")
    (root / made).symlink_to(root / "elsewhere")

    ran = run(policy, "touch ran", cwd=root)

    assert (ran.code, ran.report.ready) == (125, False)
    assert ran.error.startswith("box: ")
    assert ran.error.count("\n") == 1
    assert list(root.rglob("ran")) == []


STEPS = {
    "user namespace": "unshare=EPERM",
    "too many namespaces": "unshare=ENOSPC",
    "private mounts": "mount=EPERM",
    "paths without links": "437=ENOSYS",
    "copies of mounts": "428=EPERM",
    "attaching": "429=EPERM",
    "read-only": "442=EPERM",
    "covers": "umount2=EPERM",
    "second process": "fork=EAGAIN",
    "parent's death": "prctl:1=EPERM",
    "securebits": "prctl:28=EPERM",
    "no new privileges": "prctl:38=EPERM",
    "capability bound": "prctl:24=EPERM",
    "capabilities": "capset=EPERM",
    "Landlock rules": "445=EINVAL",
    "Landlock": "446=E2BIG",
    "seccomp": "prctl:22=EINVAL",
    "working directory": "chdir=EACCES",
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_lets_nothing_run(root: Path, step: str) -> None:
    """Whatever the kernel refuses: 125, one line that names it, and no command."""
    python = (*lesser(os.geteuid(), STEPS[step]), BASE)

    ran = run(
        replace(policy_of(root), hidden=(str(root / "outside"),)),
        "touch ran",
        cwd=root / "work",
        python=python,
    )

    assert (ran.code, ran.report.ready, ran.out) == (125, False, "")
    assert ran.error.startswith("box: ")
    assert ran.error.count("\n") == 1
    assert list((root / "work").iterdir()) == []


def test_namespaces_that_are_none_let_nothing_run(root: Path) -> None:
    """A wrong descriptor of the owner's fails closed too."""
    with Path(os.devnull).open() as wrong:
        number = wrong.fileno()
        ran = run(policy_of(root), "touch ran", cwd=root / "work", session=(number, number))

    assert (ran.code, ran.report.ready, ran.error) == (125, False, "box: setns: Invalid argument\n")


def wait_until_free(folder: Path) -> None:
    """Wait until no start has the folder: the processes around a command end a moment after it."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
    finally:
        os.close(held)


def test_a_cache_is_read_and_what_a_command_writes_is_kept_apart(root: Path) -> None:
    """The next command finds it; the user's cache stays as it was. Without a folder it is gone at its end."""
    cache, kept = root / "outside", root / "kept"
    (cache / "old").write_text("old")
    (cache / "gone").write_text("gone")
    layers = (CacheLayer(str(cache), str(kept)),)

    first = sh(root, f"cd {cache}; echo new > new; echo more >> old; rm gone; ls", caches=layers)
    wait_until_free(kept)
    second = sh(root, f"cd {cache}; cat new old; ls", caches=layers)
    third = sh(root, f"cd {cache}; echo lost > lost; ls", caches=(CacheLayer(str(cache)),))

    assert (first.out, first.error) == ("new\nold\n", "")
    assert second.out == "new\noldmore\nnew\nold\n"
    assert third.out == "gone\nlost\nold\n"
    assert sorted(path.name for path in cache.iterdir()) == ["gone", "old"]


def test_a_socket_stays_reachable_where_the_policy_says_so(root: Path) -> None:
    """Others that listen when the command starts are covered."""
    program = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    with socket.socket(socket.AF_UNIX) as listener:
        path = str(root / "outside" / "s")
        listener.bind(path)
        listener.listen()
        command = [BASE, "-c", program, path]
        work = root / "work"

        assert run(policy_of(root), command, cwd=work).code == 1
        assert run(replace(policy_of(root), sockets=(path,)), command, cwd=work).code == 0


def test_the_kernel_counts_what_had_no_route(root: Path) -> None:
    """A connection outward and a question to a name server are reported; loopback is not."""
    program = (
        "import socket\n"
        "for address in {}:\n"
        "    try: socket.create_connection((address, 9), 1)\n"
        "    except OSError as error: print(error.errno)\n"
    )
    away = run(policy_of(root), [BASE, "-c", program.format(["192.0.2.1"])], cwd=root / "work")
    here = run(policy_of(root), [BASE, "-c", program.format(["127.0.0.1"])], cwd=root / "work")

    assert (away.out, away.report.unreachable > 0) == ("101\n", True)
    assert (here.out, here.report.unreachable) == ("111\n", 0)


def test_network_on_is_the_network_of_the_machine(root: Path) -> None:
    """A listener outside is reached."""
    program = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [BASE, "-c", program, str(listener.getsockname()[1])]

        assert run(policy_of(root), command, cwd=root / "work").code == 1
        assert run(replace(policy_of(root), network=True), command, cwd=root / "work").code == 0


def test_read_only_writes_to_temporary_files_alone(root: Path) -> None:
    """The worktree is as the rest of the world."""
    policy = BoxPolicy(mode="read-only", temporary=str(root / "temporary"))

    ran = run(policy, "touch made; touch /tmp/made && ls /tmp", cwd=root / "work")

    assert (ran.out, list((root / "work").iterdir())) == ("made\n", [])
