"""The tool `read`: a page of a text file, the names in a folder, a picture or a PDF.

What must stay true: nothing is opened before the user's rules were asked; what is opened is what they were
asked about; the output fits the limits of a settlement, so that it is paged and never cut in its middle.
"""

import base64
import hashlib
from typing import Annotated

import anyio.to_thread
import msgspec

from holdfast.errors import HoldfastError, NotFound
from holdfast.location.filesystem import Entry, Filesystem, Listing, Resolved
from holdfast.schema.wire import JsonMap
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import Attachment, ToolFailure, ToolOutput
from holdfast.tools.bound import OutputLimits
from holdfast.tools.builtin import access, file_kind, missing_file, text_page
from holdfast.tools.builtin.access import Reach
from holdfast.tools.builtin.text_page import Page

LINES_MAX = 2000
BYTES_MAX = 51_200
MEDIA_BYTES_MAX = 20 << 20
PREVIEW_LINES = 20

# What stands around the lines: the tags, an empty line and the footer.
_FRAME_LINES = 6
_FRAME_BYTES = 300

DESCRIPTION = f"""Read a file, or list a folder.

Text comes with line numbers (`12: text`); they are not part of the file. Without `offset` and `limit` you \
get the beginning, up to {LINES_MAX} lines or {BYTES_MAX // 1024} KiB; its end says whether there is \
more and which `offset` goes on. Lines of more than {text_page.LINE_CHARS_MAX} characters are cut.
A folder is answered with its names, folders with a slash at their end. Pictures (JPEG, PNG, GIF, WebP), \
scaled down where they are large, and PDFs are shown to you; other binary files are refused.
Read several files at once by calling this tool several times in one turn. In a large file look for the \
place first, then read around it in one large piece rather than in many small ones."""


def read_tool(reach: Reach, limits: OutputLimits | None = None) -> Tool:
    """The tool, over the files that a call may see, for answers within the limits of a settlement."""
    room = _Room.within(limits or OutputLimits())

    @tool(name="read", description=DESCRIPTION, repeatable=True)
    async def read(
        context: ToolContext,
        filePath: Annotated[str, "The path of the file or folder, best an absolute one"],  # noqa: N803 - wire
        offset: Annotated[
            int,
            msgspec.Meta(ge=1, description="The line, or the name in a folder, to start at; 1 is the first"),
        ] = 1,
        limit: Annotated[
            int, msgspec.Meta(ge=1, description="How many lines, or names, at most")
        ] = LINES_MAX,
    ) -> ToolOutput:
        filesystem, target = await reach(context, filePath)
        await access.ask(context, filesystem, target, "read")
        page = msgspec.structs.replace(room, lines=min(room.lines, limit))
        try:
            # Bounded work on our own descriptor: an interruption need not wait for it.
            return await anyio.to_thread.run_sync(
                _read, filesystem, target, offset, page, abandon_on_cancel=True
            )
        except NotFound as error:
            raise ToolFailure(await missing_file.missing(filesystem, target)) from error
        except (HoldfastError, OSError) as error:
            raise ToolFailure(f"The file could not be read: {error}.") from error

    return read


class _Room(msgspec.Struct, frozen=True):
    """How much fits between the tags."""

    lines: int
    bytes: int

    @classmethod
    def within(cls, limits: OutputLimits) -> "_Room":
        return cls(
            max(1, min(LINES_MAX, limits.lines_max - _FRAME_LINES)), max(1, min(BYTES_MAX, limits.bytes_max))
        )


def _read(filesystem: Filesystem, target: Resolved, offset: int, room: _Room) -> ToolOutput:
    path = str(target.asked)
    # The path stands in the answer too.
    room = msgspec.structs.replace(room, bytes=max(1, room.bytes - _FRAME_BYTES - len(path.encode())))
    title = filesystem.relative(target.asked)
    if target.kind == "missing":
        raise NotFound(f"{target.asked} does not exist")
    if target.kind == "folder":
        return _folder(path, title, filesystem.list(target), offset, room)
    with filesystem.open(target) as file:
        start = file.read(file_kind.SNIFF_BYTES)
        mime = file_kind.media(start)
        if mime is not None:
            data = start + file.read(MEDIA_BYTES_MAX + 1 - len(start))
            return _media(target, title, mime, data)
        if file_kind.is_binary(target.real.name, start):
            raise ToolFailure(
                f"{path} is a binary file, which cannot be shown as text. Use a program made for its format."
            )
        file.seek(0)
        page = text_page.page(file, offset=offset, lines_max=room.lines, bytes_max=room.bytes)
    return _text(target, title, page)


def _text(target: Resolved, title: str, page: Page) -> ToolOutput:
    if not page.lines and page.first > 1:
        raise ToolFailure(_past_end(str(target.asked), page))
    path = str(target.asked)
    text = "\n".join(page.lines)
    lines = "\n".join(text_page.numbered(number, line) for number, line in enumerate(page.lines, page.first))
    display: JsonMap = {
        "type": "file",
        "path": path,
        "text": text,
        "lineStart": page.first,
        "lineEnd": page.last,
        "truncated": page.more,
    }
    metadata: JsonMap = {
        "preview": "\n".join(page.lines[:PREVIEW_LINES]),
        "truncated": page.more,
        "loaded": [],
        "filepath": str(target.real),
        "display": display if page.total is None else {**display, "totalLines": page.total},
    }
    return ToolOutput(
        text=_framed(path, "file", "content", lines, _footer(page)),
        title=title,
        metadata=metadata if page.sha256 is None else {**metadata, "sha256": page.sha256},
    )


def _footer(page: Page) -> str:
    if page.total == 0:
        return "(The file is empty.)"
    if not page.more:
        return f"(End of the file, which has {page.total} lines.)"
    of = "a file too large to count" if page.total is None else f"{page.total}"
    return f"(Lines {page.first} to {page.last} of {of}. Go on with offset={page.last + 1}.)"


def _past_end(path: str, page: Page) -> str:
    if page.total is None:
        return (
            f"Line {page.first} of {path} lies beyond the first {text_page.SCAN_BYTES_MAX >> 20} MiB, as far "
            "as this tool goes. Take a piece of the file with a program, and read that."
        )
    return f"{path} has {page.total} lines; there is no line {page.first}. Use a smaller offset."


def _folder(path: str, title: str, listing: Listing, offset: int, room: _Room) -> ToolOutput:
    names = [_name(entry) for entry in listing.entries]
    shown: list[str] = []
    size = 0
    for name in names[offset - 1 : offset - 1 + room.lines]:
        size += len(name.encode()) + 1
        if shown and size > room.bytes:
            break
        shown.append(name)
    if not shown and offset > 1:
        raise ToolFailure(f"{path} has {len(names)} names; there is no name {offset}. Use a smaller offset.")
    last = offset - 1 + len(shown)
    more = last < len(names) or not listing.complete
    total = f"{len(names)}" if listing.complete else f"more than {len(names)}"
    if not names:
        footer = "(The folder is empty.)"
    elif last < len(names):
        footer = f"(Names {offset} to {last} of {total}. Go on with offset={last + 1}.)"
    else:
        footer = f"({total} names.)"
    return ToolOutput(
        text=_framed(path, "directory", "entries", "\n".join(shown), footer),
        title=title,
        metadata={
            "preview": "\n".join(shown[:PREVIEW_LINES]),
            "truncated": more,
            "loaded": [],
            "display": {
                "type": "directory",
                "path": path,
                "entries": shown,
                "offset": offset,
                "totalEntries": len(names),
                "truncated": more,
            },
        },
    )


def _name(entry: Entry) -> str:
    return f"{entry.name}/" if entry.folder else entry.name


def _media(target: Resolved, title: str, mime: str, data: bytes) -> ToolOutput:
    if len(data) > MEDIA_BYTES_MAX:
        raise ToolFailure(
            f"{target.asked} has more than the {MEDIA_BYTES_MAX >> 20} MiB that can be shown. Shrink it."
        )
    what = "The PDF" if mime == "application/pdf" else "The picture"
    text = f"{what} {target.asked} has {len(data)} bytes."
    url = f"data:{mime};base64,{base64.b64encode(data).decode()}"
    metadata = {"preview": text, "truncated": False, "loaded": [], "filepath": str(target.real)}
    return ToolOutput(
        text=text,
        title=title,
        metadata={**metadata, "sha256": hashlib.sha256(data).hexdigest()},
        attachments=(Attachment(mime=mime, url=url, filename=target.real.name),),
    )


def _framed(path: str, kind: str, tag: str, body: str, footer: str) -> str:
    return f"<path>{path}</path>\n<type>{kind}</type>\n<{tag}>\n{body}\n{footer}\n</{tag}>"
