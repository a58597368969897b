"""The model-visible text of a request, for people to read and to keep.

Each block is written out once, where it first occurs; where it occurs again, a line says in which request it
stood before. So the text of one request is short, and all of them together are whole.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence

from holdfast.provider.request.request import (
    Assistant,
    HostedResult,
    Media,
    ProviderMessage,
    Reasoning,
    Request,
    Results,
    SystemUpdate,
    Text,
    ToolCall,
    ToolDefinition,
    User,
)
from tests import prefixes
from tests.golden.stage import Seen

_IDS = re.compile(r"\b(msg|prt|ses|evt)_[0-9a-f]{12}[0-9A-Za-z]{14}\b")

Plain = Callable[[str], str]
"""Takes out of a text what differs from machine to machine."""


def texts(seen: Sequence[Seen], plain: Plain) -> dict[str, str]:
    """The text of each request under the name of its file."""
    epochs: list[str] = []
    known: list[list[bytes]] = []
    made = {}
    for each in seen:
        blocks = prefixes.blocks(each.request)
        lines = [*_head(each, epochs), "", *_body(each.request, blocks, known)]
        known.append(blocks)
        made[f"{each.number:02}.txt"] = _IDS.sub(r"\1_…", plain("\n".join(lines))) + "\n"
    return made


def _head(seen: Seen, epochs: list[str]) -> Iterator[str]:
    request = seen.request
    yield f"request {seen.number}, turn {seen.turn}: {seen.note}"
    yield f"session {seen.session}, {request.model.provider_id}/{request.model.id}, {_place(seen, epochs)}"
    tools, system = len(request.tools), len(request.system)
    marks = [tools + index for index in request.marks.system]
    marks += [tools + system + index for index in request.marks.messages]
    yield f"tool choice {request.tool_choice}, marks at {', '.join(f'[{index + 1}]' for index in marks)}"


def _place(seen: Seen, epochs: list[str]) -> str:
    if seen.aside:
        return "beside the conversation"
    stored = seen.prefix
    if stored is None:
        return f"after {seen.before:02}, and nothing was heard"
    if stored.epoch not in epochs:
        epochs.append(stored.epoch)
    epoch = f"epoch {epochs.index(stored.epoch) + 1}"
    if stored.moved is not None:
        return f"{epoch}, moves at [{stored.kept + 1}]: {stored.moved}"
    return f"{epoch}, extends {seen.before:02}" if stored.kept else f"{epoch}, begins it"


def _body(request: Request, blocks: list[bytes], known: list[list[bytes]]) -> Iterator[str]:
    values = [*request.tools, *request.system, *request.messages]
    index = 0
    while index < len(blocks):
        where, count = _again(blocks, index, known)
        if count:
            yield f"{_span(index, count)} as {where}"
            index += count
            continue
        yield f"[{index + 1}] {_written(values[index])}"
        index += 1


def _again(blocks: list[bytes], index: int, known: list[list[bytes]]) -> tuple[str, int]:
    """Where the next blocks stood before, and how many of them: in the latest request that has the first."""
    for number in range(len(known), 0, -1):
        earlier = known[number - 1]
        if blocks[index] not in earlier:
            continue
        at = index if earlier[index : index + 1] == [blocks[index]] else earlier.index(blocks[index])
        count = 0
        while blocks[index + count : index + count + 1] == earlier[at + count : at + count + 1] != []:
            count += 1
        place = "in" if at == index else f"{_span(at, count)} in"
        return f"{place} {number:02}", count
    return "", 0


def _span(at: int, count: int) -> str:
    return f"[{at + 1}]" if count == 1 else f"[{at + 1}] to [{at + count}]"


def _written(value: ToolDefinition | str | ProviderMessage) -> str:
    match value:
        case ToolDefinition():
            digest = hashlib.sha256(_json([value.description, value.input]).encode()).hexdigest()[:16]
            return f"tool {value.name} {digest}"
        case str():
            return f"system\n{_indented(value)}"
        case User(content=content):
            return "\n".join(["person", *map(_item, content)])
        case Assistant(content=content):
            return "\n".join(["model", *map(_item, content)])
        case Results(content=results):
            said = [_result(each.id, each.name, each.content, failed=each.failed) for each in results]
            return "\n".join(["results", *said])
        case SystemUpdate(text=text):
            return f"system update\n{_indented(text)}"


def _result(id: str, name: str, content: Sequence[Text | Media], *, failed: bool) -> str:
    return "\n".join(
        [f"    {id} {name}{' failed' if failed else ''}:", *(_item(each, deep=2) for each in content)]
    )


def _item(item: Text | Media | Reasoning | ToolCall | HostedResult, deep: int = 1) -> str:
    match item:
        case Text(text=text):
            return _indented(text, deep)
        case Reasoning(text=text, metadata=metadata):
            return _indented(f"thinks: {text} {_json(metadata)}", deep)
        case ToolCall():
            return _indented(f"calls {item.name} {_json(item.input)} as {item.id}", deep)
        case HostedResult():
            return _indented(f"{item.name} at the provider: {_json(item.output)}", deep)
        case Media():
            return _indented(f"{item.mime} {item.filename}", deep)


def _indented(text: str, deep: int = 1) -> str:
    return "\n".join(f"{'    ' * deep}{line}".rstrip() for line in text.split("\n"))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
