"""What is printed on a terminal and typed at it: whole, in order, and within bounds."""

from pathlib import Path

import anyio
import pytest

from holdfast.errors import InvalidInput, Refused
from holdfast.location.terminal import open_terminal
from holdfast.location.terminal.scrollback import PIECE_BYTES_MAX
from tests.location.terminal.desk import all_of, desk, over, shown
from tests.until import until


async def test_an_ended_terminal_is_read_but_takes_no_input(tmp_path: Path) -> None:
    """Until it is removed; what it printed last is there."""
    async with desk(tmp_path) as here:
        made = await here.sh("echo last words; exit 3")
        await over(made)

        assert made.read(0, PIECE_BYTES_MAX).data == b"last words\r\n"
        assert await all_of(made, 5) == b"words\r\n"
        why = f"terminal {made.info.id} has ended with exit code 3; create another"
        with pytest.raises(Refused) as refused:
            await made.write(b"x")
        assert str(refused.value) == why
        with pytest.raises(Refused) as refused:
            made.resize(10, 10)
        assert str(refused.value) == why
        with pytest.raises(InvalidInput, match="0 bytes cannot be read"):
            made.read(0, 0)


async def test_a_slow_follower_holds_up_nobody_and_is_told_what_it_missed(tmp_path: Path) -> None:
    """Several follow; each gets all that was kept when it asked; every stream ends with the program."""
    async with desk(tmp_path, scrollback_bytes_max=10_000) as here:
        made = await here.sh("stty -opost; echo begin; read go; head -c 300000 /dev/zero; echo end")
        slow = made.follow(0, PIECE_BYTES_MAX)
        first = await anext(slow)
        await shown(made, "begin")
        await made.write(b"\n")
        await shown(made, "end\n", first.cursor)
        missed = await anext(slow)

        assert (missed.dropped > 280_000, len(missed.data), missed.text[-4:]) == (True, 10_000, "end\n")
        assert first.cursor + missed.dropped + 10_000 == missed.cursor
        with pytest.raises(StopAsyncIteration):
            await anext(slow)


async def test_a_character_that_is_printed_in_two_halves_is_given_whole(tmp_path: Path) -> None:
    """Its first half waits for the other."""
    async with desk(tmp_path) as here:
        made = await here.sh(r"stty -echo; printf 'a\303'; read go; printf '\244b'")
        pieces = made.follow(0, PIECE_BYTES_MAX)
        first = await anext(pieces)
        await made.write(b"\n")
        rest = [piece.text async for piece in pieces]

        assert (first.text, "".join(rest)) == ("a", "äb")


async def test_bytes_that_are_no_text_come_as_they_are(tmp_path: Path) -> None:
    """All 256, in an order that is no UTF-8, in several pieces."""
    binary = bytes(range(255, -1, -1)) * 700
    (tmp_path / "binary").write_bytes(binary)
    async with desk(tmp_path) as here:
        assert await all_of(await here.sh("stty -opost; cat binary")) == binary


async def test_a_program_that_closes_its_terminal_still_runs_on_it(tmp_path: Path) -> None:
    """It may open it again, and ends when it ends."""
    async with desk(tmp_path) as here:
        made = await here.sh(
            "exec <&- >&- 2>&-; touch closed; until [ -e go ]; do sleep 0.01; done; echo back >/dev/tty; "
            "exit 3"
        )
        await until((tmp_path / "closed").exists)
        assert made.running
        (tmp_path / "go").touch()

        assert (await all_of(made), made.info.exit_code) == (b"back\r\n", 3)


async def test_a_program_that_reads_no_input_holds_a_writer_up_within_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer learns how much was taken; one that waits while the terminal is removed does not wait on."""
    async with desk(tmp_path) as here:
        made = await here.sh("stty raw -echo; echo up; sleep 1000")
        await shown(made, "up")
        with pytest.raises(InvalidInput, match="1,048,577 bytes are too many at once: at most 1,048,576"):
            await made.write(bytes(1024 * 1024 + 1))
        monkeypatch.setattr(open_terminal, "WRITE_S", 0.05)
        with pytest.raises(Refused, match=r"reads no input: [\d,]+ of 100,000 bytes were written"):
            await made.write(bytes(100_000))
        monkeypatch.setattr(open_terminal, "WRITE_S", 1_000)
        refused: list[str] = []

        async def write() -> None:
            try:
                await made.write(bytes(100_000))
            except Refused as error:
                refused.append(str(error))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as writing:
                writing.start_soon(write)
                await anyio.wait_all_tasks_blocked()
                await here.terminals.remove(made.info.id)

        assert refused == [f"terminal {made.info.id} is closed; create another"]


async def test_writers_do_not_interleave(tmp_path: Path) -> None:
    """What one writes comes whole, however long the program takes to read it."""
    texts = [letter * 20_000 for letter in (b"a", b"b", b"c")]
    async with desk(tmp_path) as here:
        made = await here.sh("stty raw -echo; echo up; head -c 60000 > got")
        await shown(made, "up")
        async with anyio.create_task_group() as writing:
            for text in texts:
                writing.start_soon(made.write, text)
        await over(made)

    got = (tmp_path / "got").read_bytes()
    assert sorted(got[at : at + 20_000] for at in (0, 20_000, 40_000)) == texts


async def test_the_size_that_was_set_last_is_seen(tmp_path: Path) -> None:
    """However many came before: the program gets a signal for at least the last of them."""
    async with desk(tmp_path) as here:
        made = await here.sh("trap 'stty size' WINCH; echo up; while :; do read x; done")
        at = await shown(made, "up")
        for number in range(1_000):
            made.resize(1 + number, 5_000 - number)
        await shown(made, "1000 4001\r\n", at)

        for rows, cols in ((0, 1), (1, 10_001), (True, 1), ("2", 1)):
            with pytest.raises(InvalidInput, match="a terminal has 1 to 10,000"):
                made.resize(rows, cols)  # type: ignore[arg-type]
