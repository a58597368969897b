"""OpenCode itself: it reads what we export, and we read the database that it makes."""

import os
import subprocess
from pathlib import Path

import anyio
import msgspec
import pytest

from holdfast.store.base import Store
from holdfast.store.exchange.portable.report import Counts
from tests.store.exchange.opencode.world import brought, fingerprint
from tests.store.exchange.portable.opencode_file import REAL, real
from tests.store.exchange.portable.world import for_opencode, taken

ID = "ses_e220ef30affejZ4kkNbvVuwkR6"
SECONDS = 300

pytestmark = [pytest.mark.long, pytest.mark.needs("npm", "git")]


def run(folder: Path, *command: str) -> bytes:
    names = ("DATA", "CONFIG", "STATE", "CACHE")
    own = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in names}
    flags = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return subprocess.run(
        command,
        cwd=folder / "work",
        env={**os.environ, **own, **flags, "HOME": str(folder)},
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=SECONDS,
    ).stdout


@pytest.fixture(scope="module")
def opencode(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder for one run of OpenCode, and its program."""
    folder = tmp_path_factory.mktemp("opencode")
    (folder / "work").mkdir()
    run(folder, "git", "init", "-q", ".")
    run(folder, "git", "commit", "-q", "--allow-empty", "-m", "first")
    run(folder, "npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "opencode-ai")
    programs = [path for path in folder.glob("node_modules/opencode-*/bin/opencode") if path.is_file()]
    return folder, str(min(programs, key=lambda path: len(str(path))))


async def test_there_and_back_through_opencode(store: Store, opencode: tuple[Path, str]) -> None:
    """Our export, imported by OpenCode; its database, imported by us: the same session, untouched."""
    folder, program = opencode
    await taken(store, REAL / "export.json")
    await anyio.Path(folder / "ours.json").write_bytes(await for_opencode(store, ID))

    said = run(folder, program, "import", str(folder / "ours.json"))
    theirs = msgspec.json.decode(run(folder, program, "export", ID))
    sanitized = msgspec.json.decode(run(folder, program, "export", "--sanitize", ID))
    data = folder / "data" / "opencode"
    before = fingerprint(data)
    await store.erase(ID)
    report = await brought(store, data)

    assert said == f"Imported session: {ID}\n".encode()
    assert theirs["messages"] == real("export.json")["messages"]
    assert fingerprint(data) == before
    assert report.counts["session"] == Counts(new=1)
    assert report.counts["part"] == Counts(new=18)
    assert report.skipped == ()
    assert not (await brought(store, data)).changed
    made = msgspec.json.decode(await for_opencode(store, ID, sanitize=True))
    assert made["info"]["projectID"] == theirs["info"]["projectID"]
    assert made["messages"][0] == sanitized["messages"][0]
