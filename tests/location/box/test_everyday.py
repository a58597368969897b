"""Everyday work in a box: what programs of the trade do all day must go on as before."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast import processes
from holdfast.location.box import start
from holdfast.location.box.compose import BoxPlaces, compose
from holdfast.location.box.policy import BoxPolicy
from holdfast.location.box.session_network import SessionNetwork
from holdfast.schema.config import SandboxConfig
from tests.location.box.boxed import Ran, run
from tests.location.box.users import folder_of

pytestmark = pytest.mark.needs("box")

GIT = {
    f"GIT_{role}_{what}": "tester@example.invalid"
    for role in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


class Workshop:
    """A user with a home and a project in it, and commands of an agent there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.project = self.home / "project"
        for folder in (self.project, self.home / ".cache", self.home / ".npm", root / "temporary"):
            folder.mkdir(parents=True)

    def policy(self, worktree: Path | None = None, *, network: bool = False) -> BoxPolicy:
        places = BoxPlaces(
            worktree=worktree or self.project,
            home=self.home,
            own=(self.home / ".local/share/holdfast",),
            temporary=self.root / "temporary",
            caches=self.root / "caches",
        )
        return compose(places, SandboxConfig(network=network, reveal=[sys.prefix]), mode="workspace")

    def sh(self, command: str, *, cwd: Path | None = None, network: bool = False, **options: object) -> Ran:
        env = {"HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", **GIT}
        policy = self.policy(cwd, network=network)
        return run(policy, f"set -e\n{command}", cwd=cwd or self.project, env=env, **options)  # type: ignore[arg-type]

    def works(self, command: str, **options: object) -> str:
        """What a command prints, if it succeeds in the box."""
        ran = self.sh(command, **options)  # type: ignore[arg-type]
        assert ran.code == 0, (ran.out, ran.error)
        return ran.out


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    with folder_of(os.geteuid()) as root:
        yield Workshop(root)


def git(*arguments: str, cwd: Path) -> None:
    subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, env={**os.environ, **GIT})


@pytest.fixture
def repository(workshop: Workshop) -> Path:
    git("init", "-q", "-b", "main", cwd=workshop.project)
    (workshop.project / "file").write_text("one\n")
    git("add", ".", cwd=workshop.project)
    git("commit", "-q", "-m", "one", cwd=workshop.project)
    return workshop.project


@pytest.mark.needs("git")
def test_git(workshop: Workshop, repository: Path) -> None:
    """Commit, branch, stash, rebase, reset, tag, worktrees inside, and housekeeping."""
    out = workshop.works(
        """
        git checkout -q -b side; echo two >> file; git commit -qam two
        git checkout -q main; echo other > other; git add .; git commit -qm other
        git rebase -q side; git log --format=%s
        echo three > third; git add third; git stash -q; git stash pop -q; git commit -qm three
        git tag v1; git reset -q --hard HEAD~1; git merge -q v1
        git worktree add -q inner -b inner; cd inner; echo four > four; git add .; git commit -qm four; cd ..
        git worktree remove inner; git gc -q; git fsck --no-progress --no-dangling; git status --porcelain
        """
    )

    assert out == "other\ntwo\none\n"


@pytest.mark.needs("git")
def test_git_in_a_linked_worktree(workshop: Workshop, repository: Path) -> None:
    """Its repository lies elsewhere, and is written; the checkout beside is not."""
    linked = workshop.home / "linked"
    git("worktree", "add", "-q", str(linked), cwd=repository)

    out = workshop.works(
        "echo two >> file; git commit -qam two; git stash list; git log --format=%s", cwd=linked
    )
    hook = workshop.sh(f"echo evil > {repository}/.git/hooks/pre-commit", cwd=linked)
    beside = workshop.sh(f"echo evil > {repository}/file", cwd=linked)

    assert out == "two\none\n"
    assert [each.code for each in (hook, beside)] == [2, 2]
    assert "Read-only file system" in hook.error + beside.error


@pytest.mark.ci
@pytest.mark.needs("git")
def test_git_in_a_submodule(workshop: Workshop, repository: Path) -> None:
    """A commit goes to the repository above it."""
    part = workshop.home / "part"
    part.mkdir()
    git("clone", "-q", str(repository), str(part), cwd=workshop.home)
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "sub", cwd=repository)

    out = workshop.works("echo two >> file; git commit -qam two; git log --format=%s", cwd=repository / "sub")

    assert out == "two\none\n"


@pytest.mark.needs("git")
def test_git_config_is_refused_and_said_so(workshop: Workshop, repository: Path) -> None:
    """A setting of git may start a program; reading and the user's other commands go on."""
    ran = workshop.sh("git config user.name x")

    assert (ran.code != 0, "Device or resource busy" in ran.error) == (True, True)
    assert workshop.works("git config --get core.bare") == "false\n"


@pytest.mark.ci
def test_python(workshop: Workshop) -> None:
    """Tests with temporary folders, bytecode, subprocesses and several processes at once."""
    (workshop.project / "test_it.py").write_text(
        "import multiprocessing, subprocess, sys\n"
        "def test_it(tmp_path):\n"
        "    (tmp_path / 'file').write_text('x')\n"
        "    assert subprocess.check_output([sys.executable, '-c', 'print(1)']) == b'1\\n'\n"
        "def test_pool():\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "        assert pool.map(abs, [-1, -2]) == [1, 2]\n"
    )

    out = workshop.works(f"{sys.executable} -m pytest -q -n 0 -p no:anyio test_it.py; ls -d .pytest_cache")

    assert "2 passed" in out
    assert out.endswith(".pytest_cache\n")


@pytest.mark.needs("make", "cc")
def test_make_and_a_compiler(workshop: Workshop) -> None:
    """Objects and programs are made, and run."""
    (workshop.project / "main.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); }\n')
    (workshop.project / "Makefile").write_text("main: main.c\n\tcc -o $@ $<\n")

    assert workshop.works("make -s main; ./main") == "hello\n"


@pytest.mark.ci
@pytest.mark.needs("node")
def test_node(workshop: Workshop) -> None:
    """Files, workers, child processes and a server of its own."""
    (workshop.project / "main.js").write_text(
        "const fs = require('fs'), http = require('http'), {execSync} = require('child_process');\n"
        "fs.writeFileSync('made', 'x');\n"
        "const server = http.createServer((_, answer) => answer.end('served')).listen(0, () =>\n"
        "  http.get({port: server.address().port}, (answer) => answer.on('data', (data) => {\n"
        "    console.log(String(data), String(execSync('echo child')).trim()); server.close(); })));\n"
    )

    assert workshop.works("node main.js") == "served child\n"


@pytest.mark.ci
@pytest.mark.needs("npm")
def test_npm_installs_what_is_here_and_gives_up_without_a_network(workshop: Workshop) -> None:
    """Its cache is overlaid; without a network it ends at once and says so."""
    (workshop.project / "package.json").write_text('{"name": "it", "version": "1.0.0"}')
    package = workshop.project / "local"
    package.mkdir()
    (package / "package.json").write_text('{"name": "local", "version": "1.0.0"}')

    workshop.works("npm install --silent --no-audit --no-fund ./local; ls node_modules/local/package.json")
    began = time.monotonic()
    away = workshop.sh("npm install --no-audit --no-fund left-pad")

    assert (away.code != 0, away.report.unreachable > 0) == (True, True)
    assert time.monotonic() - began < 50
    assert list((workshop.home / ".npm").iterdir()) == []


@pytest.mark.ci
def test_pip_with_the_network_on(workshop: Workshop) -> None:
    """From an index on loopback, into an environment in the project; the user's cache stays as it was."""
    index = workshop.root / "index" / "tiny"
    index.mkdir(parents=True)
    source = workshop.project / "tiny.py"
    source.write_text("print('tiny')\n")
    import zipfile

    with zipfile.ZipFile(index / "tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.write(source, "tiny.py")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        wheel.writestr(
            "tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    source.unlink()
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"],
        cwd=index.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().split("port ")[1].split()[0]
        command = (
            f"{sys.executable} -m venv --without-pip env; "
            f"{sys.executable} -m pip --python env/bin/python install -q --isolated "
            f"--disable-pip-version-check --no-index -f http://127.0.0.1:{port}/tiny tiny; "
            "env/bin/python -m tiny"
        )
        offline = workshop.sh(command)
        online = workshop.sh(command, network=True)
    finally:
        server.kill()
        server.communicate()

    assert (online.code, online.out) == (0, "tiny\n"), online.error
    assert offline.code != 0


@pytest.mark.needs("curl")
def test_a_dev_server_in_the_background_and_curl_from_the_next_command(workshop: Workshop) -> None:
    """Both in the network of the session; the group of the server ends it, with whatever it started."""
    (workshop.project / "page").write_text("hello\n")
    policy = workshop.policy()
    command = f"{sys.executable} -u -m http.server --bind 127.0.0.1 8123 & sleep 98761 & wait"
    with SessionNetwork() as network, start.prepared(policy, session=network.descriptors) as box:
        server = subprocess.Popen(
            box.command(["/bin/sh", "-c", command]),
            cwd=workshop.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=box.descriptors,
            start_new_session=True,
        )
        box.began()
        try:
            assert server.stdout is not None
            assert b"Serving" in server.stdout.readline()
            out = workshop.works("curl -s http://127.0.0.1:8123/page", session=network.descriptors)
        finally:
            began = processes.started(server.pid)
            assert processes.end_group(server.pid, began, grace_s=5)
            server.communicate(timeout=20)

    assert out == "hello\n"
    assert not processes.is_group(server.pid)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("trap", "expected"),
    [("echo cleaned; exit 3", (b"ready\ncleaned\n", 3)), ("", (b"ready\n", -signal.SIGKILL))],
    ids=["grace", "kill"],
)
def test_the_end_of_a_group(workshop: Workshop, trap: str, expected: tuple[bytes, int]) -> None:
    """TERM reaches the command, which has its grace; who ignores it is killed, and all of the box with it."""
    command = f"trap '{trap}' TERM; setsid sleep 98762 & echo ready; while :; do sleep 0.05; done"
    with start.prepared(workshop.policy()) as box:
        process = subprocess.Popen(
            box.command(["/bin/sh", "-c", command]),
            cwd=workshop.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=box.descriptors,
            start_new_session=True,
        )
        box.began()
        assert process.stdout is not None
        first = process.stdout.readline()
        processes.end_group(process.pid, processes.started(process.pid), grace_s=5 if trap else 0.3)
        # The end of the output shows that nothing of the box is left, the other session included.
        rest, _ = process.communicate(timeout=20)

    assert (first + rest, process.returncode) == expected


@pytest.mark.ci
def test_odds_and_ends(workshop: Workshop) -> None:
    """Pipes, here-documents, terminals, large sorts, /dev/stdout and process substitution."""
    out = workshop.works(
        """
        seq 200000 | sort -r -S 1M | tail -1
        cat <<'END' > /dev/stdout
here
END
        bash -c 'diff <(echo a) <(echo a)' && echo same
        echo x > "$TMPDIR/a"; mv "$TMPDIR/a" a; cat a
        python3 -c 'import pty; pty.spawn(["echo", "terminal"])' | tr -d '\\r'
        (sleep 0.01; echo late) & wait
        """
    )

    assert out == "1\nhere\nsame\nx\nterminal\nlate\n"


def test_everyday_policies_are_for_writing(workshop: Workshop) -> None:
    """The list above would prove nothing in a box that is none."""
    assert replace(workshop.policy(), caches=()).write == (str(workshop.project),)
