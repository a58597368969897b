"""The command line over a SQLite file that is damaged itself: found, salvaged, put right."""

import random
import shutil
from pathlib import Path

import pytest

from holdfast.app import Holdfast
from tests.cli.conftest import Shell
from tests.sessions.filling import answer, ask

PAGE = 4096
RECORD_ROOT = 11
"""Of every store that we make: the page at which the table of records begins."""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell over SQLite."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    return Shell(tmp_path / "home", tmp_path / "project", f"sqlite://{tmp_path}/store.db")


def filled(shell: Shell, count: int = 4) -> list[str]:
    """Sessions with some pages of text each."""

    async def work(hf: Holdfast) -> list[str]:
        ids: list[str] = []
        for number in range(count):
            session = await hf.sessions.create(directory=shell.folder, title=f"Talk {number}")
            for _ in range(6):
                asked = await ask(hf, session.id, f"question {number} " * 40)
                await answer(hf, session.id, asked.id, f"answer {number} " * 60)
            ids.append(session.id)
        return ids

    return list(shell.make(work))


def overwrite(path: Path, page: int) -> None:
    """Garbage in the place of a page."""
    data = path.read_bytes()
    at = (page - 1) * PAGE
    path.write_bytes(data[:at] + random.Random(page).randbytes(PAGE) + data[at + PAGE :])


@pytest.mark.ci
@pytest.mark.parametrize("page", [1, 3, RECORD_ROOT])
def test_a_damaged_file_is_salvaged_and_then_repaired(shell: Shell, tmp_path: Path, page: int) -> None:
    """The head of the file, the sessions, the root of the records: no message of doctor's leads to doctor;
    what is whole comes back, into a new store and, with --repair, into the place of the old one.
    """
    ids = filled(shell)
    before = {id: shell("session", "export", id).out for id in ids}
    path = tmp_path / "store.db"
    overwrite(path, page)
    damaged = path.read_bytes()

    looked = shell("doctor")
    assert looked.code == 1, looked
    assert "SQLite" in looked.out
    assert "--salvage NEW" in looked.out
    assert "holdfast doctor" not in looked.out + looked.err

    new = tmp_path / "new.db"
    wrote = shell("doctor", "--salvage", str(new), "--format", "json")
    assert "holdfast doctor" not in wrote.err
    report = wrote.json()
    sessions = {*report["whole"], *(each["id"] for each in report["incomplete"])}
    assert (wrote.code, sessions) == (int(page == 3), set(ids))
    assert shell("--store", f"sqlite://{new}", "doctor").code == 0
    for id in report["whole"]:
        assert shell("--store", f"sqlite://{new}", "session", "export", id).out == before[id]
    assert path.read_bytes() == damaged

    mended = shell("doctor", "--repair")
    assert mended.code == 0, mended
    assert "holdfast doctor" not in mended.out + mended.err
    (aside,) = tmp_path.glob("store.db.*.damaged")
    assert aside.read_bytes() == damaged
    assert shell("doctor").code == 0
    for id in report["whole"]:
        assert shell("session", "export", id).out == before[id]


@pytest.mark.ci
def test_what_was_lost_is_named(shell: Shell, tmp_path: Path) -> None:
    """A session that lost its own record keeps its messages and says so in its title; the report names it."""
    ids = filled(shell)
    overwrite(tmp_path / "store.db", 3)
    wrote = shell("doctor", "--salvage", str(tmp_path / "new.db"))
    assert wrote.code == 1
    for id in ids:
        assert f"lost: its own record of {id}" in wrote.out
    listed = shell("--store", f"sqlite://{tmp_path}/new.db", "session", "list", "--all", "--format", "json")
    assert {each["id"]: each["title"] for each in listed.json()} == dict.fromkeys(
        ids, "Recovered session (incomplete)"
    )
    assert "exists already" in shell.fails("doctor", "--salvage", str(tmp_path / "new.db"))
    assert "stand alone" in shell.fails("doctor", "--salvage", "x", "--repair", code=2)


@pytest.mark.ci
def test_a_backup_that_was_asked_for_is_never_left_out(shell: Shell, tmp_path: Path) -> None:
    """A file in its place ends the repair of a store that cannot be opened, before anything is done."""
    filled(shell, 1)
    path, taken = tmp_path / "store.db", tmp_path / "taken"
    overwrite(path, 1)
    damaged = path.read_bytes()
    taken.touch()
    line = shell.fails("doctor", "--repair", "--backup", str(taken))
    assert f"{taken} exists already; name another file for the backup" in line
    assert (path.read_bytes(), list(tmp_path.glob("*.damaged"))) == (damaged, [])
    taken.unlink()
    assert shell("doctor", "--repair", "--backup", str(taken)).code == 0
    assert taken.read_bytes() == damaged


@pytest.mark.ci
def test_half_a_file_is_salvaged_too(shell: Shell, tmp_path: Path) -> None:
    """Cut in the middle: what lies before the cut comes, here all that was said first."""
    ids = filled(shell, 16)
    path = tmp_path / "store.db"
    said = shell("session", "export", ids[0]).json()["sessions"][0]["messages"]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "is damaged" in shell.fails("session", "list", "--all")
    looked = shell("doctor")
    assert (looked.code, "holdfast doctor" in looked.out + looked.err) == (1, False)
    wrote = shell("doctor", "--salvage", str(tmp_path / "new.db"), "--format", "json")
    assert wrote.code == 1
    assert ids[0] in {*wrote.json()["whole"], *(each["id"] for each in wrote.json()["incomplete"])}
    came = shell("--store", f"sqlite://{tmp_path}/new.db", "session", "export", ids[0]).json()
    assert came["sessions"][0]["messages"] == said


@pytest.mark.ci
def test_doctor_drops_nothing_that_stands_behind_damage_in_the_log(shell: Shell, tmp_path: Path) -> None:
    """One bit in the first frame of a log that a killed process left: doctor says so and changes no file;
    --salvage and --repair bring every session back, and the damaged log is kept.
    """
    left, here = tmp_path / "left.db", tmp_path / "store.db"

    async def work(hf: Holdfast) -> list[str]:
        ids: list[str] = [
            (await hf.sessions.create(directory=shell.folder, title=f"Talk {n}")).id for n in range(8)
        ]
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{here}{suffix}", f"{left}{suffix}")
        return ids

    ids = set(shell.make(work))
    log = bytearray(Path(f"{left}-wal").read_bytes())
    log[32 + 24 + 100] ^= 1
    Path(f"{left}-wal").write_bytes(log)
    damaged = {each.name: each.read_bytes() for each in tmp_path.glob("left.db*")}
    shell.store = f"sqlite://{left}"

    copy = tmp_path / "copy.db"
    looked = shell("doctor", "--backup", str(copy))
    assert looked.code == 1, looked
    assert [Path(f"{copy}{suffix}").read_bytes() for suffix in ("", "-wal")] == [
        damaged["left.db"],
        damaged["left.db-wal"],
    ]
    assert "the log is damaged at frame 1 of" in looked.out
    assert "--salvage NEW keeps it" in looked.out
    wrote = shell("doctor", "--salvage", str(tmp_path / "new.db"), "--format", "json")
    report = wrote.json()
    assert (wrote.code, report["complete"], set(report["whole"])) == (1, False, ids)
    assert {name: (tmp_path / name).read_bytes() for name in damaged} == damaged

    mended = shell("doctor", "--repair")
    assert mended.code == 0, mended
    assert [each.read_bytes() for each in tmp_path.glob("left.db.*.damaged-wal")] == [bytes(log)]
    assert "sound" in shell("doctor").out
    assert {each["id"] for each in shell("session", "list", "--all", "--format", "json").json()} == ids


@pytest.mark.ci
def test_a_store_in_use_is_not_exchanged(shell: Shell, tmp_path: Path) -> None:
    """Another process would go on writing into the file that was moved aside."""
    filled(shell, 1)
    path = tmp_path / "store.db"

    async def work(_: Holdfast) -> str:
        # From another process: closing the file here would drop the locks of this one.
        shell.sh(f"dd if=/dev/urandom of={path} bs={PAGE} seek={RECORD_ROOT - 1} count=1 conv=notrunc")
        return shell.fails("doctor", "--repair", "--no-backup")

    assert "is in use by another process" in shell.make(work)
    assert not list(tmp_path.glob("*.damaged"))


@pytest.mark.ci
def test_everything_that_can_be_read_is_exported(shell: Shell, tmp_path: Path) -> None:
    """A page of one session, and the head of the file: the others come, --salvage is named, the code is 1."""
    ids = filled(shell, 3)
    path, before = tmp_path / "store.db", {f"{id}.json": shell("session", "export", id).out for id in ids}
    sound = path.read_bytes()

    def exported(folder: Path) -> dict[str, str]:
        done = shell("session", "export", "--all", str(folder))
        assert (done.code, "doctor --salvage NEW" in done.err) == (1, True), done
        assert (f" of {ids[1]} cannot be read and was left out" in done.err) == (folder.name == "page")
        return {file.name: file.read_text() for file in folder.iterdir()}

    pages = [sound[at : at + PAGE] for at in range(0, len(sound), PAGE)]
    texts = [
        page.count(b"answer 1 ") if page.count(b"answer ") == page.count(b"answer 1 ") else 0
        for page in pages
    ]
    overwrite(path, texts.index(max(texts)) + 1)
    came = exported(tmp_path / "page")
    assert set(came) == set(before)
    assert [name for name in came if came[name] != before[name]] == [f"{ids[1]}.json"]
    path.write_bytes(sound)
    overwrite(path, 1)
    assert exported(tmp_path / "a folder") == before
