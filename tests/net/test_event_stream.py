"""The event-stream parser, against the WHATWG rules and against every way to cut a stream."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProviderError
from holdfast.net.event_stream import EventStreamParser, ServerEvent


def parse(*chunks: bytes) -> list[ServerEvent]:
    parser = EventStreamParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"", []),
        (b"\n\n\n", []),
        (b"data: a\n\n", [("", b"a")]),
        (b"data:a\n\n", [("", b"a")]),
        (b"data:  a\n\n", [("", b" a")]),
        (b"data\n\n", [("", b"")]),
        (b"data:\n\n", [("", b"")]),
        (b"data: a\ndata: b\n\n", [("", b"a\nb")]),
        (b"data\ndata\n\n", [("", b"\n")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [("x", b"a"), ("", b"b")]),
        (b"event: lost\n\ndata: a\n\n", [("", b"a")]),
        (b"event: one\nevent: two\ndata: a\n\n", [("two", b"a")]),
        (b": comment\n\ndata: a\n: another\ndata: b\n\n", [("", b"a\nb")]),
        (b"id: 7\nretry: 10\nother: x\ndata: a\n\n", [("", b"a")]),
        (b" data: a\n\nDATA: b\n\n", []),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", [("", b"a"), ("", b"b"), ("", b"c")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [("", b"a")]),
        (b"event: \xff\ndata: \xff\n\n", [("\ufffd", b"\xff")]),
    ],
)
def test_the_rules(stream: bytes, events: list[tuple[str, bytes]]) -> None:
    """Each rule of the format, whole and byte by byte."""
    expected = [ServerEvent(*event) for event in events]

    assert expected == parse(stream)
    assert expected == parse(*(stream[at : at + 1] for at in range(len(stream))))


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n", [b"a", b"b"]),
        (b"data: a\r", [b"a"]),
        (b"data: a\n\ndata: b", [b"a"]),
        (b"data: a\ndata: b", [b"a"]),
    ],
)
def test_the_end_gives_what_is_whole(stream: bytes, events: list[bytes]) -> None:
    """A last event without its blank line is given; a line that was cut is not."""
    assert [ServerEvent("", data) for data in events] == parse(stream)


@pytest.mark.parametrize(
    ("stream", "events", "unended"),
    [
        (b"data: a\n\ndata: b", [b"a", b"b"], True),
        (b"data: a\ndata: b", [b"a\nb"], True),
        (b"\xef\xbb\xbfdata: a", [b"a"], True),
        (b"data: a\n", [b"a"], False),
        (b"data: a\n\n: b", [b"a"], True),
    ],
)
def test_who_can_decode_may_ask_for_the_last_line(stream: bytes, events: list[bytes], unended: bool) -> None:
    """A line without its end counts when it is asked for, and the parser says that there is one."""
    parser = EventStreamParser()
    given_before = parser.feed(stream)

    assert parser.unended == unended
    assert [ServerEvent("", data) for data in events] == given_before + parser.close(whole=True)
    assert not parser.unended


PIECES = st.sampled_from(
    (
        b"data: ",
        b"data:",
        b"data",
        b"event: e",
        b": c",
        b"id: 1",
        b"{}",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xa9",
        b" ",
        b":",
        b"x",
    )
)


@given(pieces=st.lists(PIECES, max_size=40), data=st.data())
def test_any_chunking_gives_the_same_events(pieces: list[bytes], data: st.DataObject) -> None:
    """However the bytes are cut, the events are those of the uncut stream."""
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[one:other] for one, other in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert parse(stream) == parse(*chunks)


def reference(stream: bytes) -> list[ServerEvent]:
    """The format's own words, line by line, with our one departure."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[ServerEvent] = []
    lines: list[bytes] = []
    name = ""
    for line in [*text.split(b"\n")[:-1], b""]:
        field, colon, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if line == b"":
            events += [ServerEvent(name, b"\n".join(lines))] if lines else []
            name, lines = "", []
        elif colon and not field:
            continue
        elif field == b"event":
            name = value.decode("utf-8", "replace")
        elif field == b"data":
            lines.append(value)
    return events


@given(pieces=st.lists(PIECES, max_size=60))
def test_the_parser_agrees_with_a_plain_reading(pieces: list[bytes]) -> None:
    """The fast parser and a slow one that follows the specification word by word read the same."""
    stream = b"".join(pieces)

    assert reference(stream) == parse(stream)


@pytest.mark.parametrize("flood", [b"x" * 10, b"data: xx\n"])
def test_an_endless_event_is_refused(flood: bytes) -> None:
    """Neither a line nor an event without end fills the memory, and what came before it is given."""
    parser = EventStreamParser(event_bytes_max=100)
    given_before = parser.feed(b"data: before\n\n" + flood * 20)

    assert [ServerEvent("", b"before")] == given_before
    with pytest.raises(ProviderError, match="more than 100 bytes") as caught:
        parser.feed(b"\n\n")
    assert caught.value.kind == "malformed-stream"
    with pytest.raises(ProviderError):
        EventStreamParser(event_bytes_max=100).feed(flood * 20)
