"""`holdfast config`: the settings in force."""

import sys
from typing import Any

import click
import msgspec

from holdfast import flags
from holdfast.cli.lazy import LazyGroup
from holdfast.cli.output import format_option, note, print_json, print_table
from holdfast.cli.paged import paged


@click.group(
    cls=LazyGroup,
    table={"schema": ("holdfast.cli.config.group:schema", "The JSON schema of settings files, for editors.")},
    invoke_without_command=True,
)
@format_option
@click.pass_context
@paged
def config(ctx: click.Context, *, form: str) -> None:
    """Show the settings in force here, where each was set, and the flags that are set."""
    if ctx.invoked_subcommand is not None:
        return
    from holdfast.cli.config.current import here
    from holdfast.config.layers import redact
    from holdfast.schema.config import NO_EFFECT_YET

    loaded = here(ctx).workspace.loaded
    value = redact.redacted(loaded.value, loaded.origins)
    rows = [
        (".".join(map(str, path)), item, origin) for path, item, origin in settings(value, loaded.origins)
    ]
    idle = [name for name in NO_EFFECT_YET if name in value]
    if form == "json":
        body = {
            "config": value,
            "origins": {name: origin for name, _, origin in rows},
            "restrictions": loaded.restrictions,
            "flags": flags_set(),
            "warnings": loaded.warnings,
            "notices": loaded.notices,
            "noEffectYet": idle,
        }
        print_json(body)
        return
    table = [
        (name, item if isinstance(item, str) else msgspec.json.encode(item).decode(), origin)
        for name, item, origin in rows
    ]
    table += [
        (f"restricted: {rule.permission}", f"{rule.pattern}: {rule.action}", "may only tighten")
        for rules in loaded.restrictions
        for rule in rules
    ]
    table += [(variable, shown, "environment") for variable, shown in flags_set().items()]
    if table:
        print_table(["SETTING", "VALUE", "SET IN"], table, stretch=1)
    else:
        note("Nothing is set: everything is as it comes.")
    for line in (*loaded.warnings, *loaded.notices):
        note(line)
    if idle:
        note(f"Read, but without effect yet: {', '.join(idle)}.")


def settings(value: Any, origins: Any, path: tuple[str | int, ...] = ()) -> list[tuple[Any, Any, str]]:
    """Each value with its origin, in the order of the settings."""
    if path in origins:
        return [(path, value, str(origins[path]))]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [row for key, item in inner for row in settings(item, origins, (*path, key))]


def flags_set() -> dict[str, str]:
    """The variables that set a flag, without secrets."""
    from holdfast.config.layers import redact
    from holdfast.secret_text import HIDDEN

    found = {}
    for name in flags.ALL:
        variable = flags.variable_of(name)
        if variable is not None:
            shown = flags.flag(name) or ""
            found[variable] = HIDDEN if name in flags.SECRET and shown else redact.text(shown)
    return found


@click.command()
def schema() -> None:
    """Print the JSON schema of settings files, for editors."""
    from holdfast.config.layers import editor_schema

    sys.stdout.buffer.write(editor_schema.encoded())
