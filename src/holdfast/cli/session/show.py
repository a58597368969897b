"""`holdfast session show`."""

import click
import msgspec

from holdfast.cli.naming import named, session_argument
from holdfast.cli.opening import reading
from holdfast.cli.output import ago, clean, cut, format_option, print_raw, width
from holdfast.store.query import LIMIT_MAX, MessageQuery
from holdfast.store.record import SessionRecord, StoredMessage


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
        query = MessageQuery(record.id, limit=limit)
        if form == "json":
            print_raw(b'{"info":%b,"messages":%b}' % (record.json(), store.messages_json(query).body))
            return
        print_head(record)
        page = store.messages(query)
        if page.older is not None:
            click.echo(click.style("\n… earlier messages: --limit", dim=True))
        for message in page.messages:
            print_message(message)


def print_head(record: SessionRecord) -> None:
    """What the session is."""
    info = msgspec.json.decode(record.data)
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


def print_message(message: StoredMessage) -> None:
    """A message, its text whole and its tools one line each."""
    info = msgspec.json.decode(message.info.data)
    click.echo(click.style(f"\n{info['role']}  {message.info.id}", fg="cyan"))
    for part in message.parts:
        for line in lines_of(msgspec.json.decode(part.data)):
            click.echo(cut(clean(line), width()) if line.startswith("  ·") else clean(line))


def lines_of(part: dict[str, object]) -> list[str]:
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
