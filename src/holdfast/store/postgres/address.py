"""Where the database is: the URL taken apart, and a form of it that may be shown."""

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from holdfast.errors import InvalidInput

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_SCHEMES = frozenset(("postgresql", "postgres"))


class Address(msgspec.Struct, frozen=True):
    """A database and the schema that the store has in it."""

    dsn: str
    """For the driver. It may hold a password, so it is never shown."""
    schema: str
    shown: str

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def parse_url(url: str) -> Address:
    """The address behind `postgresql://…[?schema=name]`."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise InvalidInput(
            "the database URL cannot be read; it is postgresql://user@host/database"
        ) from error
    if parts.scheme not in _SCHEMES:
        raise InvalidInput("a PostgreSQL store has a URL that begins with postgresql://")
    schema = dict(query).get("schema", "holdfast")
    if _SCHEMA.fullmatch(schema) is None:
        raise InvalidInput("the schema of the database URL may have lower-case letters, digits and '_' only")
    rest = [(name, value) for name, value in query if name != "schema"]
    host = dict(rest).get("host") or parts.netloc.rpartition("@")[2]
    return Address(
        dsn=urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(rest), "")),
        schema=schema,
        shown=f"postgresql://{host}{parts.path}?schema={schema}",
    )
