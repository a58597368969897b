"""The SQL of the PostgreSQL store: files beside this one, with the schema's name put in."""

import re
from functools import cache
from importlib.resources import files

from holdfast.store.base import FORMAT

FUNCTIONS = 1
"""The version of the functions. It rises with every release that changes one of them: each version has
functions of its own, beside those of others, so that processes of two releases can work on one store."""
PREFIX = f"v{FUNCTIONS}_"

_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def script(name: str, schema: str) -> str:
    """A whole file. The schema's name is checked where the URL is read, so that it needs no quotes."""
    text = files(__name__).joinpath(f"{name}.sql").read_text("utf-8")
    text = text.replace("{f}", f"{schema}.{PREFIX}").replace("{format}", str(FORMAT))
    return text.replace("{s}", schema).replace("{{}}", "{}")


@cache
def statements(schema: str) -> dict[str, str]:
    """The named statements of `queries.sql`."""
    pieces = _NAMED.split(script("queries", schema))
    return {name: text.strip() for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}
