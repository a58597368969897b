"""The SQL of the PostgreSQL store: files beside this one, with the schema's name put in."""

import re
from functools import cache
from importlib.resources import files

_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def script(name: str, schema: str) -> str:
    """A whole file. The schema's name is checked where the URL is read, so that it needs no quotes."""
    text = files(__name__).joinpath(f"{name}.sql").read_text("utf-8")
    return text.replace("{s}", schema).replace("{{}}", "{}")


@cache
def statements(schema: str) -> dict[str, str]:
    """The named statements of `queries.sql`."""
    pieces = _NAMED.split(script("queries", schema))
    return {name: text.strip() for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}
