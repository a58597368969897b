"""`holdfast session show`."""

from typing import Any

import click
import msgspec

from holdfast.cli import message_lines
from holdfast.cli.open_store import Reading, reading
from holdfast.cli.output import ago, clean, format_option, print_raw, width
from holdfast.cli.paged import paged
from holdfast.cli.readable import BROKEN, content, session_fields
from holdfast.cli.session_name import named, session_argument
from holdfast.cli.table import cut
from holdfast.store.query import LIMIT_MAX, MessageQuery
from holdfast.store.record import SessionRecord


@click.command()
@session_argument
@click.option(
    "-n", "--limit", type=click.IntRange(1, LIMIT_MAX), default=20, show_default=True, help="Messages."
)
@format_option
@click.pass_context
@paged
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
        "model": _model(info),
        "tokens": _tokens(info),
        "cost": _cost(info),
        "reverted": _reverted(info),
    }
    for key, fact in facts.items():
        if fact:
            click.echo(f"  {key:<10} {clean(str(fact))}")


def _cost(info: dict[str, Any]) -> str:
    spent = info.get("spent")
    known = not (isinstance(spent, dict) and spent.get("unknown"))
    return message_lines.money(info.get("cost") or 0, known=known)


def _reverted(info: dict[str, Any]) -> str | None:
    revert = info.get("revert")
    if not isinstance(revert, dict):
        return None
    return f"from {revert.get('messageID')} on; `session unrevert` brings it back, the next prompt removes it"


def _model(info: dict[str, Any]) -> str | None:
    model = info.get("model")
    return f"{model.get('providerID')}/{model.get('id')}" if isinstance(model, dict) else None


def _tokens(info: dict[str, Any]) -> str | None:
    used = info.get("tokens")
    if not isinstance(used, dict):
        return None
    cache = used.get("cache") or {}
    read = cache.get("read") or 0
    sent = (used.get("input") or 0) + read + (cache.get("write") or 0)
    written = (used.get("output") or 0) + (used.get("reasoning") or 0)
    return f"{sent:,.0f} in, {read:,.0f} of them cached; {written:,.0f} out"


def print_message(id: str, info: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    """A message: its text whole, its tools in short, how it ended, what it took."""
    click.echo(click.style(f"\n{clean(str(info.get('role')))}  {id}", fg="cyan"))
    for part in parts:
        is_text = part.get("type") == "text"
        for line in map(clean, message_lines.of_part(part)):
            click.echo(line if is_text else cut(line, width()))
    if (fault := message_lines.ending(info, parts)) is not None:
        click.echo(click.style(clean(fault), fg="red"))
    if (usage := message_lines.usage(info, parts)) is not None:
        click.echo(click.style(clean(usage), dim=True))
