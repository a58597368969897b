"""A user who may only read a store: no powers over files but those of their modes."""

import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Done, Shell

WITHOUT_POWERS = """
import ctypes, os, sys
# Root may write everywhere, unless it gives that up: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~0b110
    sets[1] &= ~0b110
    assert libc.capset(header, sets) == 0
sys.argv[0] = "holdfast"
from holdfast.cli.main import main
main()
"""


def reads(shell: Shell, *arguments: str) -> Done:
    """A command of a user who has no powers over files but those of their modes."""
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_POWERS, *arguments],
        cwd=shell.folder,
        env=shell.variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Done(ran.returncode, ran.stdout, ran.stderr)


def close(root: Path, *, writable: bool) -> None:
    """Take the right to write below a folder away, or give it back."""
    for path in (root, *root.rglob("*")):
        mode = 0o700 if path.is_dir() else 0o600
        path.chmod(mode if writable else mode & 0o555)
