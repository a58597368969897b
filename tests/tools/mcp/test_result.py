"""What a server answers, as the output of a tool."""

import base64

import mcp_types as types
import pytest

from holdfast.toolkit.output import Attachment, ToolOutput
from holdfast.tools.mcp.wire import result
from holdfast.tools.mcp.wire.result import contents, output


def answer(*blocks: types.ContentBlock, **more: object) -> ToolOutput:
    return output(types.CallToolResult(content=list(blocks), **more), "t")  # type: ignore[arg-type]


def picture(data: bytes, mime: str = "image/png") -> types.ImageContent:
    return types.ImageContent(type="image", data=base64.b64encode(data).decode(), mime_type=mime)


def test_a_large_structured_value_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the server says it in text too."""
    monkeypatch.setattr(result, "STRUCTURED_BYTES_MAX", 10)
    said = types.TextContent(type="text", text="seven")

    assert answer(structured_content={"a": 7}) == ToolOutput(text="", title="t", structured={"a": 7})
    assert answer(structured_content={"abc": 1234}) == ToolOutput(text='{\n  "abc": 1234\n}', title="t")
    assert answer(said, structured_content={"abc": 1234}) == ToolOutput(text="seven", title="t")


def test_a_file_that_models_do_not_take_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too large, of another kind, or no file at all."""
    monkeypatch.setattr(result, "FILE_BYTES_MAX", 3)
    sound = types.AudioContent(type="audio", data="AAAA", mime_type="audio/wav")
    broken = types.ImageContent(type="image", data="no base64!", mime_type="image/png")
    made = answer(picture(b"abc", "Image/PNG; x=y"), picture(b"abcd"), sound, broken)

    assert made.attachments == (Attachment(mime="image/png", url="data:image/png;base64,YWJj"),)
    assert made.text.split("\n\n") == [
        "[A picture is not shown: it has 4 bytes.]",
        "[A recording is not shown: audio/wav of 3 bytes.]",
        "[A picture is not shown: its content is no base64.]",
    ]


def test_an_answer_without_anything_and_an_address_that_is_only_named() -> None:
    """Nothing is fetched; words are on one line."""
    link = types.ResourceLink(type="resource_link", uri="file:///etc/passwd", name="a\x1b[2J\nb")

    assert answer().text == "(The tool answered nothing.)"
    assert answer(link).text == "[Resource file:///etc/passwd: a [2J b]"
    assert contents([], "t").text == "(It is empty.)"
