"""What of a folder is pinned, and what is not."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.config.pins import snapshot
from holdfast.errors import HoldfastError
from holdfast.person import small_file
from tests.config.world import World, write


def names(world: World, top: Path | None = None) -> list[str]:
    """What is pinned of the project."""
    return list(snapshot.take(world.project, top or world.project, world.home).pins)


def test_what_steers_is_pinned_and_nothing_else(world: World) -> None:
    """Settings and what they include, agents, modes, commands, programs, definitions of skills; not text for
    the model, the work itself, state beside a program, compiled code, or plans.
    """
    steering = {
        "opencode.json": '{"agent": {"a": {"prompt": "{file:prompts/a.md} {file:~/own.md} {file:../up.md}"}},'
        ' "plugin": ["./extra/p.py", ["../elsewhere.py", {}], "npm-name"], "skills": {"paths": ["more"]}}',
        "holdfast.jsonc": "// nothing",
        "prompts/a.md": "x",
        "extra/p.py": "x",
        "more/deep/SKILL.md": "x",
        ".opencode/agent/team/a.md": "x",
        ".opencode/tool/b.ts": "x",
        ".holdfast/config.toml": "",
        ".holdfast/modes/m.md": "x",
        ".holdfast/commands/c.md": "x",
        ".holdfast/tools/t.py": "x",
        ".holdfast/tools/inner/_helper.py": "x",
        ".holdfast/plugins/p.py": "x",
        ".holdfast/skills/s/SKILL.md": "x",
        ".claude/skills/s/SKILL.md": "x",
        ".agents/skills/s/SKILL.md": "x",
    }
    others = (
        "AGENTS.md",
        "prompts/b.md",
        "config.toml",
        ".opencode/package.json",
        ".opencode/node_modules/x/index.js",
        ".holdfast/plans/p.md",
        ".holdfast/plugins/state.db",
        ".holdfast/plugins/__pycache__/p.cpython-311.py",
        ".holdfast/skills/s/data.txt",
        "sub/opencode.json",
    )
    for name, text in {**steering, **dict.fromkeys(others, "{}")}.items():
        write(world.project / name, text)
    up = write(world.project.parent / "up.md", "x").resolve()
    write(world.home / "own.md", "x")

    found = snapshot.take(world.project, world.project, world.home)

    assert found.pins == {
        "../up.md": f"-> {up} {sha256(b'x').hexdigest()}",
        **{name: sha256(text.encode()).hexdigest() for name, text in sorted(steering.items())},
    }
    assert names(world, world.project.parent) == sorted([*steering, "../up.md", "../home/own.md"])


def test_what_a_plugin_may_import_is_pinned(world: World) -> None:
    """The Python files beside it and below; of one at the top of the project those beside it alone. A module
    that comes later is a change, like one in the place of a package that was imported.
    """
    for name in ("dev/plug.py", "dev/helper.py", "dev/lib/deep.py", "dev/notes.txt", "dev/.venv/x.py"):
        write(world.project / name, "x")
    for name in ("top.py", "beside.py", "src/work.py"):
        write(world.project / name, "x")
    settings = write(world.project / "opencode.json", '{"plugin": ["./dev/plug.py"]}')
    assert names(world) == ["dev/helper.py", "dev/lib/deep.py", "dev/plug.py", "opencode.json"]
    settings.write_text('{"plugin": ["./top.py", "./dev/gone.ts"]}')
    assert names(world) == ["beside.py", "opencode.json", "top.py"]


def test_pins_are_of_bytes_alone(world: World) -> None:
    """The same after a touch and another mode; another one for each byte; none for a file that is gone."""
    path = write(world.project / "opencode.json", "{}")
    before = snapshot.take(world.project, world.project, world.home).pins
    os.utime(path, (1, 1))
    path.chmod(0o600)
    assert snapshot.take(world.project, world.project, world.home).pins == before
    path.write_text("{} ")
    assert snapshot.take(world.project, world.project, world.home).pins != before
    path.unlink()
    assert names(world) == []


def test_a_link_out_is_pinned_with_what_it_leads_to(world: World, tmp_path: Path) -> None:
    """Target and content, through a file and through a folder, and the target of one that leads nowhere. What
    is loaded is what was pinned. A loop of folders ends.
    """
    outside = tmp_path.resolve() / "outside"
    write(outside / "agent" / "a.md", "x")
    write(outside / "o.json", "{}")
    (world.project / "opencode.json").symlink_to(outside / "o.json")
    (world.project / "holdfast.json").symlink_to(tmp_path / "nowhere")
    (world.project / ".opencode").symlink_to(outside)
    write(world.project / "shared" / "agent" / "b.md", "x")
    (world.project / "shared" / "agent" / "loop").symlink_to(world.project / "shared")
    (world.project / ".holdfast").symlink_to(world.project / "shared")

    found = snapshot.take(world.project, world.project, world.home)

    assert found.pins == {
        ".holdfast/agent/b.md": sha256(b"x").hexdigest(),
        ".opencode/agent/a.md": f"-> {outside / 'agent/a.md'} {sha256(b'x').hexdigest()}",
        "holdfast.json": f"-> {tmp_path.resolve() / 'nowhere'}",
        "opencode.json": f"-> {outside / 'o.json'} {sha256(b'{}').hexdigest()}",
    }
    write(outside / "agent" / "a.md", "evil")
    write(outside / "agent" / "later.md", "evil")
    read = [found.read(world.project / ".opencode/agent" / name) for name in ("a.md", "later.md")]
    assert read == [b"x", None]


def test_what_was_read_is_what_is_loaded(world: World, tmp_path: Path) -> None:
    """Whatever is there by now: a changed file, a new one, a planted link; others are read as they are."""
    path = write(world.project / "opencode.json", '{"username": "{file:name}"}')
    write(world.project / "name", "before")
    write(tmp_path / "evil.json", "evil")
    write(world.home / "own", "now")
    found = snapshot.take(world.project, world.project, world.home)
    path.write_text("evil")
    write(world.project / "name", "evil")
    (world.project / "holdfast.json").symlink_to(tmp_path / "evil.json")
    (world.project / ".holdfast").symlink_to(tmp_path)

    read = [
        found.read(world.project / name)
        for name in ("opencode.json", "name", "holdfast.json", ".holdfast/evil.json", "src/x")
    ]
    assert read == [b'{"username": "{file:name}"}', b"before", None, None, None]
    assert found.read(world.home / "own") == b"now"


@pytest.mark.parametrize("kind", ["bytes", "files", "entries", "pipe", "name", "total"])
def test_it_is_bounded(world: World, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A huge file, too many of them, a pipe, a name that no record can hold: an error that names it."""
    plugins = world.project / ".holdfast" / "plugins"
    plugins.mkdir(parents=True)
    for name, limit in (("FILES_MAX", 5), ("ENTRIES_MAX", 20), ("TOTAL_BYTES_MAX", 2_000_000)):
        monkeypatch.setattr(snapshot, name, limit)
    match kind:
        case "bytes":
            (plugins / "a.py").write_bytes(b"#" * 1_048_577)
        case "total":
            for name in "ab":
                (plugins / f"{name}.py").write_bytes(b"#" * 1_048_000)
        case "pipe":
            os.mkfifo(plugins / "a.py")
        case "name":
            Path(os.fsdecode(os.fsencode(plugins) + b"/\xff.py")).write_text("x")
        case _:
            for number in range(6 if kind == "files" else 21):
                (plugins / f"{number}.{'py' if kind == 'files' else 'txt'}").write_text("x")
    said = {
        "bytes": "is larger than",
        "total": "have more than 2000000 bytes",
        "files": "more than 5 files",
        "entries": "more than 20 entries",
        "pipe": "no regular file",
        "name": "not UTF-8",
    }
    with pytest.raises(HoldfastError, match=said[kind]):
        names(world)


def test_a_link_that_is_swapped_while_it_is_read_brings_nothing_else(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is pinned with its target is read there, wherever the link leads at that moment."""
    link = world.project / "opencode.json"
    link.symlink_to(write(tmp_path / "o.json", "trusted"))
    evil = write(world.project / "evil.json", "evil")
    read = small_file.read

    def swapping(path: Path, *, bytes_max: int) -> bytes | None:
        link.unlink()
        link.symlink_to(evil)
        try:
            return read(path, bytes_max=bytes_max)
        finally:
            link.unlink()
            link.symlink_to(tmp_path / "o.json")

    monkeypatch.setattr(small_file, "read", swapping)
    found = snapshot.take(world.project, world.project, world.home)
    assert found.pins == {
        "opencode.json": f"-> {tmp_path.resolve() / 'o.json'} {sha256(b'trusted').hexdigest()}"
    }
    assert found.read(link) == b"trusted"
