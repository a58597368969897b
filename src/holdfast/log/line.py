"""A line of the log. Pure.

    2026-11-16T07:42:50.123Z INFO 4711 runtime turn.end session=ses_… finish=stop in=1200 out=40 ms=2310

Time in UTC, level, process, room, event, then facts. A value is bare, or a JSON string where it holds
anything but letters, digits and `_ . / : @ + , -`. What must stay true: one line, within `LINE_MAX`
characters, printable, without anything that has the shape of a secret.
"""

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from holdfast.secret_text import without_secrets
from holdfast.text import one_line

LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}
NAMES = {number: name for name, number in LEVELS.items()}
VALUE_MAX = 300
LINE_MAX = 4_000
_BARE = re.compile(r"[A-Za-z0-9_./:@+,\-]+")


def described(name: str, facts: Mapping[str, object]) -> str:
    """An event and its facts."""
    words = [name, *(f"{key}={_value(value)}" for key, value in facts.items())]
    text = " ".join(words)
    return text if len(text) <= LINE_MAX else f"{text[: LINE_MAX - 1]}…"


def of(record: logging.LogRecord) -> str:
    """The line of a record, without its end. A record that is no event of ours becomes one: `message`."""
    made = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    name = getattr(record, "event", None)
    text = record.getMessage() if name is not None else described("message", _plain(record))
    room = record.name.removeprefix("holdfast.")
    level = NAMES.get(record.levelno, record.levelname)
    return f"{made.removesuffix('+00:00')}Z {level} {record.process} {room} {text}"


def _plain(record: logging.LogRecord) -> dict[str, object]:
    kind = record.exc_info[0] if record.exc_info else None
    return {"text": record.getMessage(), **({} if kind is None else {"error": kind.__name__})}


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    text = one_line(without_secrets(str(value)), VALUE_MAX)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
