"""Instructions from addresses: bounded, kept, and never a reason to wait or to stop."""

import stat
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import pytest

from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import ABSENT, ContextSource, Missing
from holdfast.context.sources import remote_instructions
from holdfast.context.sources.instruction_text import Instructions, InstructionText
from holdfast.context.sources.remote_instructions import FRESH_MS, QUIET_MS, Fetching
from holdfast.context.system_context import LIMIT_S
from holdfast.net import last_good
from holdfast.net.last_good import Copy, LastGood
from holdfast.net.stream import Http
from holdfast.testing.clock import FakeClock
from holdfast.testing.mock_provider import MockProvider, Raw, Trouble
from tests.context.sources.world import Told

MARKDOWN = {"content-type": "text/markdown"}


class Remote:
    """A host on this machine, the folder of copies, and what was warned of."""

    def __init__(self, host: MockProvider, folder: Path) -> None:
        self.host = host
        self.folder = folder
        self.clock = FakeClock()
        self.http = Http()
        self.warnings: list[str] = []
        self.fetching = Fetching(self.http, LastGood(folder), self.clock, self.warnings.append)

    def source(self, *paths: str) -> ContextSource[Instructions]:
        urls = [path if "://" in path else f"{self.host.url}{path}" for path in paths]
        return remote_instructions.remote_instructions(urls, self.fetching)

    async def load(self, *paths: str) -> Instructions | Missing:
        self.warnings.clear()
        return await self.source(*paths).load()

    def said(self, path: str, text: str) -> InstructionText:
        return InstructionText(f"{self.host.url}{path}", text)

    @property
    def asked(self) -> Sequence[str]:
        return [each.path for each in self.host.requests]


@pytest.fixture
async def remote(tmp_path: Path) -> AsyncIterator[Remote]:
    async with MockProvider() as host:
        made = Remote(host, tmp_path / "instructions")
        yield made
        await made.http.aclose()


def good(text: str, **headers: str) -> Raw:
    return Raw((text.encode(),), 200, MARKDOWN | headers)


BAD = {
    "an error": (Raw((b"x",), 500, {}), "the answer is 500"),
    "a redirect": (Raw((), 302, {"location": "/y"}), "the answer is 302"),
    "not changed": (Raw((), 304, {}), "the answer is 304"),
    "a web page": (Raw((b"<p>",), 200, {"content-type": "text/html"}), "answers with a web page"),
    "no text": (Raw((b"\xff",), 200, MARKDOWN), "can't decode byte"),
    "too much": (Raw((b"x" * 65_537,), 200, MARKDOWN), "more than 65,536 bytes"),
}


@pytest.mark.parametrize(("answer", "said"), BAD.values(), ids=BAD)
async def test_what_never_loaded_is_left_out(remote: Remote, answer: Raw, said: str) -> None:
    """Absent with a warning, so that it does not block; the other addresses count."""
    remote.host.play(answer)
    assert await remote.load("/a?token=hidden") is ABSENT

    (warning,) = remote.warnings
    assert warning.startswith(f"instructions from {remote.host.url}/a cannot be fetched: ")
    assert said in warning
    assert warning.endswith("; the text is left out")
    assert "hidden" not in warning
    assert "\n" not in warning

    remote.host.play(good("b"))
    assert await remote.load("/a?token=hidden", "/b") == (remote.said("/b", "b"),)


async def test_nobody_there_is_no_reason_to_stop(remote: Remote) -> None:
    """A port on which nobody listens."""
    with_port = "http://127.0.0.1:1/a"
    assert await remote.load(with_port) is ABSENT
    (warning,) = remote.warnings
    assert "nothing listens at 127.0.0.1:1" in warning


async def test_a_silent_host_is_left(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within its own bound, which is less than the bound of every source."""
    assert remote_instructions.WAIT_MS / 1000 < LIMIT_S
    monkeypatch.setattr(remote_instructions, "WAIT_MS", 50)
    remote.host.play(Trouble("no-answer"))

    assert await remote.load("/v1/messages") is ABSENT
    (warning,) = remote.warnings
    assert "did not answer within 50 ms" in warning


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://example.invalid/a", "only https addresses are fetched"),
        ("https://me:pw@example.invalid/a", "a user name or password"),
        ("https:///a", "names no host"),
        ("https://exa mple.invalid/", "characters that no address may hold"),
        ("http://[::1/a", "cannot be read"),
    ],
)
async def test_what_is_not_fetched(remote: Remote, url: str, said: str) -> None:
    """Only encrypted addresses, or those of this machine, and none with a password in it."""
    assert await remote.load(url) is ABSENT
    (warning,) = remote.warnings
    assert said in warning
    assert "pw" not in warning


async def test_addresses_stand_in_their_order(remote: Remote, told: Told) -> None:
    """Told as one whole, each once under its address without what may be secret; changes tell all of it."""
    remote.host.play(good("A", etag='"1"'), good("A"))
    source = remote.source("/a?token=hidden", "/a?token=hidden", "/a")
    address = f"{remote.host.url}/a"

    assert await told.hear(source) == (
        "These instructions were fetched from addresses that the person chose.\n\n"
        f"Instructions from: {address}\nA\n\nInstructions from: {address}\nA"
    )
    assert await told.hear(source) is None
    remote.clock.advance(FRESH_MS)
    remote.host.play(good("A2"), good("A2"))
    assert await told.hear(source) == (
        "The fetched instructions have changed. What follows is all of them as they are now; it supersedes "
        "every fetched instruction that you were given before.\n\n"
        f"Instructions from: {address}\nA2\n\nInstructions from: {address}\nA2"
    )
    assert await told.hear() == "The fetched instructions that you were given before no longer apply."
    assert remote.warnings == []


async def test_a_fresh_copy_is_not_asked_for(remote: Remote) -> None:
    """Within its time no host is asked; then it is, with the tag of what is known."""
    remote.host.play(good("one", etag='"1"'), Raw((), 304, {}))
    expected = (remote.said("/a", "one"),)

    assert await remote.load("/a") == expected
    remote.clock.advance(FRESH_MS - 1)
    assert await remote.load("/a") == expected
    assert len(remote.asked) == 1
    remote.clock.advance(1)
    assert await remote.load("/a") == expected
    assert remote.host.requests[1].headers["if-none-match"] == '"1"'
    remote.clock.advance(FRESH_MS - 1)
    assert await remote.load("/a") == expected
    assert len(remote.asked) == 2


async def test_the_last_good_copy_holds(remote: Remote) -> None:
    """While the host fails, also in another process; and for a while nobody asks it again."""
    remote.host.play(good("one"), Raw((), 500, {}))
    expected = (remote.said("/a", "one"),)
    await remote.load("/a")
    remote.clock.advance(FRESH_MS)

    assert await remote.load("/a") == expected
    assert remote.warnings[0].endswith("the answer is 500; the text holds as it last was")
    assert await remote.load("/a") == expected
    assert remote.warnings == []
    assert len(remote.asked) == 2

    remote.clock.advance(QUIET_MS)
    remote.host.play(good("two"))
    assert await remote.load("/a") == (remote.said("/a", "two"),)


async def test_what_was_told_holds_when_the_copy_is_lost_too(remote: Remote, told: Told) -> None:
    """Each address by itself, those that are shown alike in their order; then it is a copy again, which
    counts for whoever asks while the host stays away.
    """
    urls = [f"{remote.host.url}{path}" for path in ("/a?x=1", "/a?x=2", "/b")]
    remote.host.play(good("A1"), good("A2"), good("B"))
    for url in urls:
        await remote.load(url)
    await told.hear(remote.source(*urls))
    assert told.snapshot is not None
    for path in remote.folder.iterdir():
        path.unlink()
    remote.host.play(Raw((), 500, {}), Raw((), 500, {}), good("B2"))
    known = remote_instructions.texts_in(told.snapshot, urls)
    assert known == dict(zip(urls, ("A1", "A2", "B"), strict=True))

    sources = [remote_instructions.remote_instructions([url], remote.fetching, before=known) for url in urls]
    found = [await source.load() for source in sources]
    assert found == [(remote.said(path, text),) for path, text in (("/a", "A1"), ("/a", "A2"), ("/b", "B2"))]
    assert [line.rpartition("; ")[2] for line in remote.warnings] == ["the text holds as it last was"] * 2
    assert await remote.load("/a?x=2") == (remote.said("/a", "A2"),)


async def test_an_address_that_others_found_away_holds_as_it_was_told(remote: Remote) -> None:
    """Nobody asks it for a while, and yet what the model was told of it counts."""
    remote.host.play(Raw((), 500, {}))
    assert await remote.load("/a") is ABSENT
    url = f"{remote.host.url}/a"
    source = remote_instructions.remote_instructions([url], remote.fetching, before={url: "one"})
    assert await source.load() == (remote.said("/a", "one"),)
    assert len(remote.asked) == 1


@pytest.mark.parametrize("value", [3, [{"path": 1}], [{"path": "http://127.0.0.1/b", "text": "b"}]])
def test_what_was_told_of_nobody_is_nothing(value: object) -> None:
    """A value of another version, or of other addresses."""
    snapshot = Snapshot({remote_instructions.KEY: SnapshotEntry(value)})
    assert remote_instructions.texts_in(snapshot, ["http://127.0.0.1/a"]) == {}
    assert remote_instructions.texts_in(Snapshot(), ["http://127.0.0.1/a"]) == {}


async def test_an_empty_answer_is_one(remote: Remote) -> None:
    """Instructions that were emptied are gone, and no fault."""
    remote.host.play(good(" \n"))

    assert await remote.load("/a") is ABSENT
    assert await remote.load("/a") is ABSENT
    assert (remote.warnings, len(remote.asked)) == ([], 1)


async def test_copies_are_private(remote: Remote) -> None:
    """One file, for its owner only, whose name does not tell the address."""
    remote.host.play(good("one"))
    await remote.load("/a?token=hidden")
    (path,) = remote.folder.iterdir()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "hidden" not in path.name
    assert b"hidden" not in path.read_bytes()


async def test_a_folder_that_cannot_be_written_costs_only_the_copy(remote: Remote) -> None:
    """What was fetched counts all the same."""
    remote.folder.write_text("a file in its place")
    remote.host.play(good("one"))

    assert await remote.load("/a") == (remote.said("/a", "one"),)
    (warning,) = remote.warnings
    assert warning.startswith(f"instructions from {remote.host.url}/a cannot be kept: ")


async def test_very_many_addresses_are_bounded(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first count."""
    monkeypatch.setattr(remote_instructions, "URLS_MAX", 1)
    remote.host.play(good("a"))

    assert await remote.load("/a", "/b") == (remote.said("/a", "a"),)
    assert remote.warnings == ["2 addresses have instructions; those after 1 are left out"]
    assert remote.asked == ["/a"]


async def test_addresses_are_asked_at_once(remote: Remote) -> None:
    """One that does not answer does not hold another."""
    remote.host.play(Trouble("no-answer"), good("b"))
    paths = ("/a/v1/messages", "/b/v1/messages")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(remote.load, *paths)
            await remote.host.stalled.wait()
            while len(remote.asked) < 2:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    assert sorted(remote.asked) == list(paths)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"text": 3}', b"\xff", b" " * (last_good.BYTES_MAX + 1)]
)
def test_a_broken_copy_is_none(tmp_path: Path, data: bytes) -> None:
    """It is as if the address had never answered."""
    kept = LastGood(tmp_path)
    kept.put("https://a.example/", Copy(text="a", fetched_ms=5))
    assert kept.get("https://a.example/") == Copy(text="a", fetched_ms=5)
    (path,) = tmp_path.iterdir()
    path.write_bytes(data)

    assert kept.get("https://a.example/") == Copy()


def test_old_copies_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more files than the bound, the newest kept."""
    monkeypatch.setattr(last_good, "COPIES_MAX", 2)
    kept = LastGood(tmp_path)
    for number in range(4):
        kept.put(f"https://a.example/{number}", Copy(text=str(number)))

    assert len(list(tmp_path.iterdir())) == 2
    assert kept.get("https://a.example/3") == Copy(text="3")


@pytest.mark.parametrize(
    ("copy", "due"),
    [
        (Copy(), True),
        (Copy(text="", fetched_ms=1_000_000), False),
        (Copy(text="", fetched_ms=1_000_000 - FRESH_MS), True),
        (Copy(text="", fetched_ms=1_000_001), True),
        (Copy(failed_ms=1_000_000), False),
        (Copy(failed_ms=1_000_000 - QUIET_MS), True),
        (Copy(failed_ms=1_000_001), True),
    ],
)
def test_when_an_address_is_asked(copy: Copy, due: bool) -> None:
    """When its copy is old and it did not just fail; a clock that was set back does not silence it."""
    assert copy.is_due(1_000_000, fresh_ms=FRESH_MS, quiet_ms=QUIET_MS) is due
