"""The tool `recall`: finds again what happened in this session and is no longer in the model's view.

Messages are found through the store's index. Output of tools is not in it, so as long as too little is found
there, the stored output is looked through, a page at a time, within a bound; of output that was too long for
the record, the file that holds all of it.
"""

import codecs
import re
from collections.abc import AsyncIterator, Callable
from typing import Annotated, BinaryIO, Final

import anyio.to_thread
import msgspec

from holdfast.schema.part import Part, TextPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery, SearchQuery
from holdfast.toolkit.context import ToolContext
from holdfast.toolkit.declare import Tool, tool
from holdfast.toolkit.output import ToolFailure, ToolOutput

NAME: Final = "recall"
LIMIT_DEFAULT: Final = 10
LIMIT_MAX: Final = 50
OWN_MAX: Final = 20
"""Earlier calls of this tool that may be among the finds."""
SNIPPET_CHARS: Final = 300
PAGE: Final = 100
SCANNED_MAX: Final = 5_000
"""Messages that are looked through for output, the latest first."""
PIECE_BYTES: Final = 1 << 20
KEPT_BYTES_MAX: Final = 256 << 20
"""How much of all kept files one call looks through."""

OpenKept = Callable[[str], BinaryIO | None]
"""Opens a file with the whole of an output by the path that its record names; None when there is none."""

DESCRIPTION: Final = """Search everything that was said and done in this session, also what was compacted \
and is no longer in front of you: messages, the arguments of calls, and the output of tools.

Give words that must all occur; exact names, paths and error messages find most. The answer has short \
excerpts, each with the id of its message."""


class Snippet(msgspec.Struct, frozen=True):
    """A place that was found."""

    message: str
    kind: str
    text: str


def recall_tool(store: Store, open_kept: OpenKept = lambda _: None) -> Tool:
    """The tool, over the records of a store and the files of output that was too long for them."""

    @tool(name=NAME, description=DESCRIPTION, repeatable=True)
    async def recall(
        context: ToolContext,
        query: Annotated[str, "The words to look for"],
        limit: Annotated[
            int, msgspec.Meta(ge=1, le=LIMIT_MAX, description="How many excerpts at most")
        ] = LIMIT_DEFAULT,
    ) -> ToolOutput:
        words = query.split()
        if not words:
            raise ToolFailure("The query is empty. Give the words to look for.")
        found = await _snippets(store, context.session_id, query, limit)
        if len(found) < limit:
            known = {(each.message, each.kind) for each in found}
            more = [each async for each in _put_out(store, Kept(open_kept), context.session_id, words, limit)]
            found += [each for each in more if (each.message, each.kind) not in known][: limit - len(found)]
        shown = [f"{each.message} ({each.kind}): {each.text}" for each in found]
        text = (
            "\n\n".join(shown) if shown else f"Nothing in this session holds all of: {' '.join(words)[:200]}"
        )
        return ToolOutput(text=text, title=query[:80], metadata={"count": len(found)})

    return recall


async def _snippets(store: Store, session: str, query: str, limit: int) -> list[Snippet]:
    """What the index finds among the messages; an earlier search for it is no find."""
    found: list[Snippet] = []
    for hit in await store.search(SearchQuery(query, session=session, limit=limit + OWN_MAX)):
        if hit.message is None or hit.part is None:
            continue
        record = await store.get(session, "part", hit.part)
        part = None if record is None else record.value()
        if isinstance(part, ToolPart) and part.tool == NAME:
            continue
        kind = f"call of {part.tool}" if isinstance(part, ToolPart) else "message"
        found.append(Snippet(hit.message, kind, " ".join(hit.snippet.split())[:SNIPPET_CHARS]))
    return found[:limit]


async def _put_out(
    store: Store, kept: "Kept", session: str, words: list[str], limit: int
) -> AsyncIterator[Snippet]:
    """What the stored output of tools holds, the latest first."""
    before: str | None = None
    given = scanned = 0
    while scanned < SCANNED_MAX:
        page = await store.messages(MessageQuery(session, limit=PAGE, before=before, system=False))
        for message in reversed(page.messages):
            scanned += 1
            for part in reversed(message.parts):
                value = part.value()
                found = _in_part(value, words) or await kept.holds(value, words)
                if found is None:
                    continue
                yield Snippet(message.info.id, *found)
                given += 1
                if given == limit:
                    return
        if page.older is None:
            return
        before = page.older


def _in_part(part: Part, words: list[str]) -> tuple[str, str] | None:
    """What kind of record it is, and the excerpt, if it holds the words."""
    match part:
        case ToolPart(tool=name) if name == NAME:
            return None
        case ToolPart(tool=name, state=ToolCompleted(output=text)):
            kind = f"output of {name}"
        case ToolPart(tool=name, state=ToolError(error=text)):
            kind = f"failure of {name}"
        case TextPart(text=text):
            kind = "message"  # The index comes after the commit, and may not have it yet.
        case _:
            return None
    excerpt = around(text, words)
    return None if excerpt is None else (kind, excerpt)


class Kept:
    """The files with output that was too long for its record, looked through within a bound."""

    def __init__(self, open_kept: OpenKept) -> None:
        self._open = open_kept
        self._left = KEPT_BYTES_MAX

    async def holds(self, part: Part, words: list[str]) -> tuple[str, str] | None:
        """Where the whole of an output is, and the excerpt, if it holds the words."""
        if not isinstance(part, ToolPart) or part.tool == NAME:
            return None
        state = part.state
        if not isinstance(state, ToolCompleted | ToolError):
            return None
        path = _kept_path(state)
        if path is None:
            return None
        # Bounded work on a descriptor of its own: an interruption need not wait for it.
        excerpt = await anyio.to_thread.run_sync(self._search, path, words, abandon_on_cancel=True)
        return None if excerpt is None else (f"output of {part.tool}, kept in {path}", excerpt)

    def _search(self, path: str, words: list[str]) -> str | None:
        file = self._open(path)
        if file is None:
            return None
        with file:
            return self._in_file(file, words)

    def _in_file(self, file: BinaryIO, words: list[str]) -> str | None:
        """The text around the first of the words, if all of them occur in the file."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        missing = {word: re.compile(re.escape(word), re.IGNORECASE) for word in words}
        overlap = max(SNIPPET_CHARS, *map(len, words))
        excerpt, text = None, ""
        while missing and self._left > 0 and (data := file.read(min(PIECE_BYTES, self._left))):
            self._left -= len(data)
            text = text[-overlap:] + decoder.decode(data)
            found = [word for word, pattern in missing.items() if pattern.search(text)]
            if found and excerpt is None:
                excerpt = around(text, found)
            for word in found:
                del missing[word]
        return None if missing else excerpt


def _kept_path(state: ToolCompleted | ToolError) -> str | None:
    """The file that holds all of an output that was cut. A tool may name files as well, and those are none of
    ours to search: it is the last one, and the mark in the text names it.
    """
    metadata = state.metadata or {}
    paths = metadata.get("outputPaths")
    if metadata.get("truncated") is not True or not isinstance(paths, list) or not paths:
        return None
    text = state.output if isinstance(state, ToolCompleted) else state.error
    return paths[-1] if isinstance(paths[-1], str) and paths[-1] in text else None


def around(text: str, words: list[str]) -> str | None:
    """The text around the first of the words, if all of them occur, whatever their case. Pure."""
    places = [re.search(re.escape(word), text, re.IGNORECASE) for word in words]
    found = [place.start() for place in places if place is not None]
    if len(found) < len(words):
        return None
    begin = max(0, min(found) - SNIPPET_CHARS // 3)
    piece = " ".join(text[begin : begin + SNIPPET_CHARS].split())
    return f"{'… ' if begin else ''}{piece}{' …' if begin + SNIPPET_CHARS < len(text) else ''}"
