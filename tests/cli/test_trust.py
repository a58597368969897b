"""`holdfast trust` and a project that changes: what a person types, and what comes back."""

import stat
from pathlib import Path

import anyio.to_thread
import pytest

from holdfast.testing.mock_provider import MockProvider, Reply, Say
from tests.cli.conftest import Shell, configured, said
from tests.cli.terminal import Terminal

PLUGIN = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').write_text('x')\n"


@pytest.fixture
def shell(tmp_path: Path, mock: MockProvider) -> Shell:
    """A person whose settings name the provider."""
    return configured(tmp_path, mock)


def plugin(shell: Shell) -> Path:
    """A plugin that somebody left in the project."""
    path = shell.folder / ".holdfast" / "plugins" / "left.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PLUGIN)
    return path


@pytest.mark.ci
async def test_headless_a_change_counts_as_untrusted(shell: Shell, mock: MockProvider) -> None:
    """Between two runs something wrote a plugin and a setting: neither is loaded, one line names both and the
    commands. Trusted again, both count.
    """
    folder = shell.folder.resolve()
    (folder / "opencode.json").write_text('{"username": "me"}')
    await said(shell, "trust")
    left = plugin(shell)
    (folder / "opencode.json").write_text('{"username": "evil"}')
    mock.play(Reply((Say("One."),)), Reply((Say("Two."),)))

    first = await said(shell, "run", "go")

    assert (first.code, first.out) == (0, "One.\n")
    assert first.err == (
        f"{folder} changed since it was trusted, and counts as not trusted: .holdfast/plugins/left.py "
        f"(added), opencode.json; see `holdfast trust --diff {folder}`, then `holdfast trust {folder}`\n"
    )
    assert not left.with_suffix(".ran").exists()
    await said(shell, "trust")
    second = await said(shell, "run", "go")
    assert (second.out, second.err, left.with_suffix(".ran").exists()) == ("Two.\n", "", True)


@pytest.mark.ci
async def test_on_a_terminal_a_change_is_asked_about(shell: Shell, mock: MockProvider) -> None:
    """The files are shown. No: nothing is loaded, and the next run asks again. Yes: it counts, for good."""
    (shell.folder / "opencode.json").write_text("{}")
    await said(shell, "trust")
    left = plugin(shell)
    mock.play(*(Reply((Say("Done."),)) for _ in range(3)))

    def answered(key: str | None) -> bool:
        screen = Terminal(shell, "run", "go")
        if key is not None:
            screen.sees("Do you trust them as they are now?")
            screen.press(f"{key}\r")
        code, text = screen.ends()
        assert code == 0, text
        assert ("added: .holdfast/plugins/left.py" in text) == (key is not None), text
        return left.with_suffix(".ran").exists()

    seen = [await anyio.to_thread.run_sync(answered, key) for key in ("n", "y", None)]
    assert seen == [False, True, True]


@pytest.mark.ci
async def test_the_difference_is_shown(shell: Shell) -> None:
    """Per file, as a unified diff, with nothing that a terminal would obey; the list says what holds. The
    former texts are for the user alone, and go with the trust.
    """
    folder = shell.folder.resolve()
    settings = folder / "opencode.json"
    settings.write_text('{\n  "username": "me"\n}\n')
    (folder / ".holdfast/agents").mkdir(parents=True)
    (folder / ".holdfast/agents/a.md").write_text("Help.\n")
    assert "added: opencode.json" in shell("trust", "--diff").out
    shell("trust")
    assert (shell("trust", "--diff").out, shell("trust", "--list").out.count("trusted")) == ("", 1)
    settings.write_text('{\n  "username": "\x1b[31mevil"\n}\n')
    (folder / ".holdfast/agents/a.md").unlink()
    (folder / "holdfast.json").write_text("{}")

    shown = shell("trust", "--diff")

    assert "\x1b" not in shown.out
    assert [line for line in shown.out.splitlines() if "username" not in line] == [
        "removed: .holdfast/agents/a.md",
        "--- a/.holdfast/agents/a.md",
        "+++ /dev/null",
        "@@ -1,2 +0,0 @@",
        "-Help.",
        "-",
        "added: holdfast.json",
        "--- /dev/null",
        "+++ b/holdfast.json",
        "@@ -0,0 +1 @@",
        "+{}",
        "changed: opencode.json",
        "--- a/opencode.json",
        "+++ b/opencode.json",
        "@@ -1,4 +1,4 @@",
        " {",
        " }",
        " ",
    ]
    assert '-  "username": "me"' in shown.out
    assert "changed since: 3" in shell("trust", "--list").out
    listed = shell("trust", "--list", "--format", "json").json()
    assert [(each["holds"], [change["path"] for change in each["changed"]]) for each in listed] == [
        (False, [".holdfast/agents/a.md", "holdfast.json", "opencode.json"])
    ]
    assert [each["kind"] for each in shell("trust", "--diff", "--format", "json").json()] == [
        "removed",
        "added",
        "changed",
    ]
    (kept,) = (shell.home / ".local/share/holdfast/trust").iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (kept.parent, kept)] == [0o700, 0o600]
    shell("trust", "--revoke")
    assert not kept.exists()


@pytest.mark.ci
async def test_what_cannot_be_pinned_is_not_trusted(shell: Shell) -> None:
    """A huge file is an error of one line that names it."""
    plugin(shell).write_bytes(b"#" * 1_048_577)
    assert "plugins/left.py is larger than 1048576 bytes" in shell.fails("trust")
    assert "--diff decides nothing" in shell.fails("trust", "--diff", "--revoke", code=2)
