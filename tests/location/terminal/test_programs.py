"""Programs that use the whole screen."""

import contextlib
from pathlib import Path

import pytest

from holdfast.errors import Refused
from tests.location.terminal.desk import ESCAPE, all_of, desk, shown
from tests.until import until

SCREEN, LEFT = "\x1b[?1049h", "\x1b[?1049l"
"""What `xterm` is sent when a program takes the whole screen, and when it gives it back."""


@pytest.mark.needs("vi")
async def test_a_text_is_written_in_an_editor(tmp_path: Path) -> None:
    """It takes the screen, obeys keys, draws again at another size, and gives the screen back."""
    async with desk(tmp_path) as here:
        editor = await here.open("vi", ("-u", "NONE", "-i", "NONE", "-n", "note.txt"), rows=30, cols=100)
        await shown(editor, SCREEN)
        await editor.write("ihello Grüße\r".encode())
        at = await shown(editor, "hello")
        editor.resize(12, 40)
        await shown(editor, "hello", at)
        await editor.write(ESCAPE + b":wq\r")

        assert LEFT in (await all_of(editor)).decode()
        assert (editor.info.exit_code, (tmp_path / "note.txt").read_text()) == (0, "hello Grüße\n\n")


@pytest.mark.ci
@pytest.mark.needs("top")
async def test_a_full_screen_that_renews_itself_is_followed_and_left(tmp_path: Path) -> None:
    """It fills the size that it has, renews at once after another was set, and goes with a key."""
    async with desk(tmp_path) as here:
        top = await here.open("top", ("-d", "60"), rows=20, cols=80)
        at = await shown(top, "PID USER")
        top.resize(10, 60)
        await top.write(b" ")
        await shown(top, "PID USER", at)

        async def is_left() -> bool:
            with contextlib.suppress(Refused):
                await top.write(b"q")  # It drops keys that come while it renews its screen.
            return not top.running

        await until(is_left)

        assert top.info.exit_code == 0
