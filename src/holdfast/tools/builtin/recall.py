"""The tool `recall`: finds again what was said in this session and is no longer in the model's view.

Messages are found through the store's index. Output of tools is not in it, so as long as too little is found
there, the stored output is looked through, a page at a time, within a bound.
"""

import re
from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Final

import msgspec

from holdfast.schema.part import Part, TextPart, ToolPart
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.store.base import Store
from holdfast.store.query import MessageQuery, SearchQuery
from holdfast.tool.context import ToolContext
from holdfast.tool.declare import Tool, tool
from holdfast.tool.output import ToolFailure, ToolOutput

NAME: Final = "recall"
LIMIT_DEFAULT: Final = 10
LIMIT_MAX: Final = 50
OWN_MAX: Final = 20
"""Earlier calls of this tool that may be among the finds."""
SNIPPET_CHARS: Final = 300
PAGE: Final = 100
SCANNED_MAX: Final = 5_000
"""Messages that are looked through for output, the latest first."""

DESCRIPTION: Final = """Search everything that was said and done in this session, also what was compacted \
and is no longer in front of you: messages, the arguments of calls, and the output of tools.

Give words that must all occur; exact names, paths and error messages find most. The answer has short \
excerpts, each with the id of its message."""


class Snippet(msgspec.Struct, frozen=True):
    """A place that was found."""

    message: str
    kind: str
    text: str


def recall_tool(store: Store) -> Tool:
    """The tool, over the records of a store."""

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
        found = await _said(store, context.session_id, query, limit)
        if len(found) < limit:
            known = {(each.message, each.kind) for each in found}
            more = [each async for each in _put_out(store, context.session_id, words, limit)]
            found += [each for each in more if (each.message, each.kind) not in known][: limit - len(found)]
        shown = [f"{each.message} ({each.kind}): {each.text}" for each in found]
        text = (
            "\n\n".join(shown) if shown else f"Nothing in this session holds all of: {' '.join(words)[:200]}"
        )
        return ToolOutput(text=text, title=query[:80], metadata={"count": len(found)})

    return recall


async def _said(store: Store, session: str, query: str, limit: int) -> list[Snippet]:
    """What the index finds among the messages; that somebody looked for it before is no find."""
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


async def _put_out(store: Store, session: str, words: list[str], limit: int) -> AsyncIterator[Snippet]:
    """What the stored output of tools holds, the latest first."""
    before: str | None = None
    given = scanned = 0
    while scanned < SCANNED_MAX:
        page = await store.messages(MessageQuery(session, limit=PAGE, before=before, system=False))
        for message in reversed(page.messages):
            scanned += 1
            for snippet in _in_parts((part.value() for part in reversed(message.parts)), words):
                yield Snippet(message.info.id, *snippet)
                given += 1
                if given == limit:
                    return
        if page.older is None:
            return
        before = page.older


def _in_parts(parts: Iterable[Part], words: list[str]) -> Iterable[tuple[str, str]]:
    for part in parts:
        match part:
            case ToolPart(tool=name) if name == NAME:
                continue
            case ToolPart(tool=name, state=ToolCompleted(output=text)):
                kind = f"output of {name}"
            case ToolPart(tool=name, state=ToolError(error=text)):
                kind = f"failure of {name}"
            case TextPart(text=text):
                kind = "message"  # The index comes after the commit, and may not have it yet.
            case _:
                continue
        if (excerpt := around(text, words)) is not None:
            yield kind, excerpt


def around(text: str, words: list[str]) -> str | None:
    """The text around the first of the words, if all of them occur, whatever their case. Pure."""
    places = [re.search(re.escape(word), text, re.IGNORECASE) for word in words]
    found = [place.start() for place in places if place is not None]
    if len(found) < len(words):
        return None
    begin = max(0, min(found) - SNIPPET_CHARS // 3)
    piece = " ".join(text[begin : begin + SNIPPET_CHARS].split())
    return f"{'… ' if begin else ''}{piece}{' …' if begin + SNIPPET_CHARS < len(text) else ''}"
