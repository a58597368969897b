"""What this host can do: decided by running something in a box, not by versions; asked once a boot.

`full`: namespaces, mounts, seccomp. `partial`: Landlock and seccomp only, which leave modes of files, named
sockets and UDP open. `none`: neither. Only `full` keeps what docs/security.md promises.
"""

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, Literal

import msgspec

from holdfast.errors import ContextError
from holdfast.location.box import interpreter, start
from holdfast.location.box.policy import BoxPolicy
from holdfast.person import small_file
from holdfast.schema import typed

Level = Literal["full", "partial", "none"]
WAIT_S: Final = 10.0
_NAME: Final = "box-level.json"
# Writes inside, and must fail to write outside and to read what is hidden.
_PROBE: Final = (
    'echo in >"$1/in" || exit 3; { echo out >"$2/out"; } 2>&- && exit 4; cat "$3" >&- 2>&- && exit 5; exit 0'
)
_FAULTS: Final = {3: "it could not write", 4: "it could write outside", 5: "it could read what is hidden"}


class HostLevel(msgspec.Struct, frozen=True):
    """The level, and what stands in the way of the next one."""

    level: Level
    why: str = ""

    def __str__(self) -> str:
        match self.level:
            case "full":
                return "full: commands of agents are confined"
            case "partial":
                return f"partial: commands are confined in part only, so they ask ({self.why})"
            case "none":
                return f"none: commands cannot be confined, so they ask ({self.why})"


class _Kept(msgspec.Struct, frozen=True):
    key: str
    found: HostLevel


def host_level(state: Path) -> HostLevel:
    """The level of this host, measured at the first question of a boot. It blocks: ask in a thread."""
    return known(state) or renewed(state)


def known(state: Path) -> HostLevel | None:
    """The level that was measured during this boot; None where it was not."""
    try:
        kept = typed.decode(small_file.read(state / _NAME) or b"", _Kept)
    except (msgspec.MsgspecError, ContextError):
        return None
    return kept.found if kept.key == _key() else None


def renewed(state: Path) -> HostLevel:
    """The level as it is now, measured again and kept for the rest of the boot."""
    found = measured()
    with contextlib.suppress(ContextError):  # The next process measures again.
        small_file.write(state / _NAME, msgspec.json.encode(_Kept(_key(), found)))
    return found


def measured(python: tuple[str, ...] = ()) -> HostLevel:
    """Run the probe in the whole box, else in what is left of it. `python`: the interpreter to do it with."""
    if sys.platform != "linux":
        return HostLevel("none", f"there is no box for {sys.platform} yet")
    whole = _probed(python, namespaces=True)
    if whole is None:
        return HostLevel("full")
    less = _probed(python, namespaces=False)
    return HostLevel("partial", whole) if less is None else HostLevel("none", f"{whole}; {less}")


def _probed(python: tuple[str, ...], *, namespaces: bool) -> str | None:
    """None if the box held, else what went wrong."""
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-box-") as text:
            root = Path(os.path.realpath(text))
            inside, outside, hidden = root / "inside", root / "outside", root / "hidden"
            inside.mkdir()
            outside.mkdir()
            hidden.write_text(secrets.token_hex())
            covered = (str(hidden),) if namespaces else ()
            policy = BoxPolicy(mode="workspace", write=(str(inside),), hidden=covered)
            secret = hidden if namespaces else root / "absent"
            program = ["/bin/sh", "-c", _PROBE, "probe", str(inside), str(outside), str(secret)]
            return _ran(policy, program, inside, python, namespaces=namespaces)
    except (OSError, ContextError) as error:
        return str(error)


def _ran(
    policy: BoxPolicy, program: list[str], cwd: Path, python: tuple[str, ...], *, namespaces: bool
) -> str | None:
    with start.prepared(policy, namespaces=namespaces, python=python) as box:
        try:
            ran = subprocess.run(
                box.command(program),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=WAIT_S,
                check=False,
                pass_fds=box.descriptors,
                env={"PATH": os.defpath},
            )
        except subprocess.TimeoutExpired:
            return f"no box was built within {WAIT_S:.0f} s"
        box.began()
        if not box.report().ready:
            said = ran.stderr.decode(errors="replace").strip().splitlines()
            return (said[-1] if said else f"the launcher ended with {ran.returncode}")[:200]
        return None if ran.returncode == 0 else _FAULTS.get(ran.returncode, f"status {ran.returncode}")


def _key() -> str:
    """What may change the answer: the boot, the namespaces we are in, the user, the interpreter, our code."""
    parts = [str(os.geteuid()), sys.executable, str(interpreter.SOURCE.stat().st_mtime_ns)]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip())
        parts += [str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("user", "pid")]
    return " ".join(parts)
