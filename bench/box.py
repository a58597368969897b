"""What the box costs a command: `true` bare and boxed, turn by turn, so that a busy moment meets both.

    scripts/bench box [--times N]

Rows: the interpreter alone (its start is most of the cost), the box with a network namespace of its own, with
the one that the commands of a session share, with the network on, and with everything that a session has (a
repository, overlaid caches, hidden secrets); then from an event loop, as a session runs them: a bare command,
and one for which a launcher waited, as for every command of a session but the first. The bar: that one, less
bare, 25 ms at the middle.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from anyio.abc import Process

from holdfast.location.box import interpreter, start
from holdfast.location.box.compose import BoxPlaces, compose
from holdfast.location.box.policy import BoxPolicy
from holdfast.location.box.session_network import SessionNetwork
from holdfast.location.box.start import Errand
from holdfast.location.box.waiting_launcher import WaitingLauncher
from holdfast.schema.config import SandboxConfig

BAR_MS = 25.0
SETTLE_S = 0.05
"""How long a launcher has waited at least: a model takes longer to think of the next command."""
LOOP, AHEAD = "bare, from a loop", "box, its launcher waited"
ENVIRONMENT = {"PATH": os.defpath}


def bare(cwd: Path) -> None:
    subprocess.run(["true"], cwd=cwd, env=ENVIRONMENT, check=True, stdin=subprocess.DEVNULL)


def python(cwd: Path) -> None:
    command = [*interpreter.command()[:-2], "-c", ""]
    subprocess.run(command, cwd=cwd, env=ENVIRONMENT, check=True, stdin=subprocess.DEVNULL)


def boxed(policy: BoxPolicy, cwd: Path, session: tuple[int, int] | None = None) -> None:
    with start.prepared(policy, session=session) as box:
        process = subprocess.Popen(
            box.command(["true"]),
            cwd=cwd,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            pass_fds=box.descriptors,
            start_new_session=True,
        )
        box.began()
        assert process.wait() == 0
        assert box.report().ready


async def from_loop(policy: BoxPolicy, cwd: Path, session: tuple[int, int], times: int) -> list[list[float]]:
    """Bare commands, and commands for which a launcher waited."""
    taken: list[list[float]] = [[], []]
    for _ in range(times):
        began = time.perf_counter()
        process = await anyio.open_process(
            ["true"], cwd=cwd, env=ENVIRONMENT, stdin=subprocess.DEVNULL, start_new_session=True
        )
        await ended(process)
        taken[0].append((time.perf_counter() - began) * 1e3)
        launcher = await WaitingLauncher.start()
        await anyio.sleep(SETTLE_S)
        began = time.perf_counter()
        with start.prepared(policy, session=session) as box:
            launcher.give(box, Errand(["true"], cwd, ENVIRONMENT))
            box.began()
            await ended(launcher.process)
            taken[1].append((time.perf_counter() - began) * 1e3)
            assert box.report().ready
    return taken


async def ended(process: Process) -> None:
    assert process.stdout is not None
    async for _ in process.stdout:
        pass
    assert await process.wait() == 0


def session_policy(root: Path) -> BoxPolicy:
    """What a session of a user with the usual things in their home has."""
    home, work = root / "home", root / "home" / "project"
    for name in (
        ".ssh",
        ".aws",
        ".gnupg",
        ".config/gh",
        ".cache",
        ".npm",
        ".cargo/registry",
        ".docker",
        "data",
    ):
        (home / name).mkdir(parents=True)
    for name in (".npmrc", ".netrc", ".bash_history"):
        (home / name).touch()
    work.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    (home / "temporary").mkdir()
    places = BoxPlaces(
        worktree=work,
        home=home,
        own=(home / "data",),
        temporary=home / "temporary",
        caches=root / "caches",
    )
    return compose(places, SandboxConfig(), mode="workspace")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=200)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory(dir="/var/tmp") as text, SessionNetwork() as network:
        root = Path(text)
        (root / "work").mkdir()
        (root / "temporary").mkdir()
        plain = BoxPolicy(mode="workspace", write=(str(root / "work"),), temporary=str(root / "temporary"))
        online = BoxPolicy(mode="workspace", network=True, write=plain.write, temporary=plain.temporary)
        whole = session_policy(root)
        project = Path(whole.write[0])
        rows: dict[str, Callable[[], None]] = {
            "bare": lambda: bare(project),
            "interpreter alone": lambda: python(project),
            "box, network on": lambda: boxed(online, root / "work"),
            "box, network off": lambda: boxed(plain, root / "work"),
            "box, session's network": lambda: boxed(plain, root / "work", network.descriptors),
            "box, all of a session": lambda: boxed(whole, project, network.descriptors),
        }
        taken: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(times):
            for name, work in rows.items():
                began = time.perf_counter()
                work()
                taken[name].append((time.perf_counter() - began) * 1e3)
        taken[LOOP], taken[AHEAD] = anyio.run(from_loop, whole, project, network.descriptors, times)
    middle = {name: sorted(each)[len(each) // 2] for name, each in taken.items()}
    print(f"{'':26}{'p50':>8}{'p90':>8}{'least':>8}{'over bare':>11}  ms, {times} times")
    for name, each in taken.items():
        ordered = sorted(each)
        ninety = ordered[int(len(ordered) * 0.9)]
        over = middle[name] - middle[LOOP if name == AHEAD else "bare"]
        print(f"{name:26}{middle[name]:8.1f}{ninety:8.1f}{ordered[0]:8.1f}{over:11.1f}")
    over = middle[AHEAD] - middle[LOOP]
    print(f"bar: {BAR_MS:.0f} ms over bare; {'held' if over <= BAR_MS else 'MISSED'} with {over:.1f}")
    print(f"load: {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}, Linux {os.uname().release}")


if __name__ == "__main__":
    main()
