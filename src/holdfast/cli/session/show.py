"""`holdfast session show`."""

from typing import Any

import click
import msgspec

from holdfast.cli.naming import named, session_argument
from holdfast.cli.opening import Reading, reading
from holdfast.cli.output import ago, clean, cut, format_option, print_raw, width
from holdfast.cli.readable import BROKEN, content, session_fields
from holdfast.store.query import LIMIT_MAX, MessageQuery
from holdfast.store.record import SessionRecord


@click.command()
@session_argument
@click.option(
    "-n", "--limit", type=click.IntRange(1, LIMIT_MAX), default=20, show_default=True, help="Messages."
)
@format_option
@click.pass_context
def show(ctx: click.Context, *, name: str, limit: int, form: str) -> None:
    """Show a session and its latest messages."""
    with reading(ctx) as store:
        record = named(store, name)
        assert store is not None, "named found it there"
        info = session_fields(record)
        query = MessageQuery(record.id, limit=limit, system=False)
        if form == "json":
            print_raw(b'{"info":%b,"messages":%b}' % (record.json(), messages_json(store, query)))
            return
        # All of it is read before any of it is shown.
        page = store.messages(query)
        messages = [(content(each.info), [content(part) for part in each.parts]) for each in page.messages]
        print_head(record, info)
        if page.older is not None:
            click.echo(click.style("\n… earlier messages: --limit", dim=True))
        for message, (fields, parts) in zip(page.messages, messages, strict=True):
            print_message(message.info.id, fields, parts)


def messages_json(store: Reading, query: MessageQuery) -> bytes:
    """The messages as stored; whichever of them is damaged is named."""
    body = store.messages_json(query).body
    try:
        msgspec.json.decode(body)
    except BROKEN:
        for message in store.messages(query).messages:
            for record in (message.info, *message.parts):
                content(record)
        raise
    return body


def print_head(record: SessionRecord, info: dict[str, Any]) -> None:
    """What the session is."""
    click.echo(click.style(clean(info["title"]), bold=True))
    facts = {
        "id": record.id,
        "slug": info.get("slug"),
        "state": "busy" if record.busy else "archived" if info["time"].get("archived") else "idle",
        "directory": info["directory"],
        "project": info["projectID"],
        "parent": info.get("parentID"),
        "updated": ago(info["time"]["updated"]),
        "cost": f"${info.get('cost') or 0:.4f}",
    }
    for key, fact in facts.items():
        if fact:
            click.echo(f"  {key:<10} {clean(str(fact))}")


def print_message(id: str, info: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    """A message, its text whole and its tools one line each."""
    click.echo(click.style(f"\n{clean(str(info.get('role')))}  {id}", fg="cyan"))
    for part in parts:
        for line in lines_of(part):
            click.echo(cut(clean(line), width()) if line.startswith("  ·") else clean(line))


def lines_of(part: dict[str, Any]) -> list[str]:
    """What a person wants to see of a part."""
    match part:
        case {"type": "text", "text": str(text)} if not part.get("synthetic"):
            return text.splitlines()
        case {"type": "tool", "tool": tool, "state": {"status": status, "input": inputs}}:
            return [f"  · {tool} [{status}] {msgspec.json.encode(inputs).decode()}"]
        case {"type": "file"}:
            return [f"  · file {part.get('filename') or part.get('mime')}"]
        case {"type": "patch", "files": [*files]}:
            return [f"  · changed {', '.join(map(str, files))}"]
        case {"type": "subtask", "description": description}:
            return [f"  · subtask {description}"]
        case {"type": "compaction"}:
            return ["  · compaction"]
        case _:
            return []
