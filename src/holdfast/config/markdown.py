"""Markdown with YAML front matter: settings at the head, a text below.

The files may be a stranger's: no aliases (they can stand for more than any memory holds), bounded depth and
size, and no YAML type that JSON does not have.
"""

import datetime as dt
import math
import re
from typing import Any

HEAD_BYTES_MAX = 64 * 1024
DEPTH_MAX = 32

_HEAD = re.compile(r"---[ \t]*\r?\n(.*?)(?:\r?\n)?^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_PLAIN = re.compile(r"^([A-Za-z_][\w-]*):[ \t]+([^\s'\"|>\[{&*!#][^\n]*:[^\n]*)$", re.MULTILINE)


class BadFrontMatter(ValueError):
    """The head of a file cannot be read; the message says why in a few words."""


def split(text: str) -> tuple[dict[str, Any], str]:
    """The settings and the text, trimmed. A file without front matter is all text."""
    found = _HEAD.match(text)
    if found is None:
        return {}, text.strip()
    if len(found[1]) > HEAD_BYTES_MAX:
        raise BadFrontMatter(f"its front matter has more than {HEAD_BYTES_MAX} characters")
    return _loaded(found[1]), text[found.end() :].strip()


def _loaded(head: str) -> dict[str, Any]:
    import yaml

    try:
        value = _yaml(head)
    except yaml.YAMLError:
        # `description: Use when: always` is what people write: such values become block texts.
        try:
            value = _yaml(_PLAIN.sub(lambda line: f"{line[1]}: |-\n  {line[2]}", head))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            at = f" at its line {mark.line + 2}" if mark is not None else ""
            raise BadFrontMatter(f"its front matter is not YAML{at}") from None
    except RecursionError:
        raise BadFrontMatter("its front matter is nested too deeply") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadFrontMatter("its front matter is no list of keys and values")
    return {str(key): _plain(item) for key, item in value.items()}


def _yaml(head: str) -> Any:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    for event in yaml.parse(head, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise BadFrontMatter("its front matter uses YAML aliases; write the values out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise BadFrontMatter("its front matter is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    try:
        return yaml.load(head, Loader=loader)  # noqa: S506 - a safe loader, see above
    except (ValueError, OverflowError) as error:  # a date or a number that cannot be
        raise BadFrontMatter("its front matter has a value that cannot be") from error


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case float() if not math.isfinite(value):
            raise BadFrontMatter("its front matter has a number that is not finite")
        case int() if not isinstance(value, bool) and abs(value) >= 2**63:
            raise BadFrontMatter("its front matter has a number that is too large")
        case None | str() | bool() | int() | float():
            return value
        case dt.date():
            return value.isoformat()
        case _:
            raise BadFrontMatter("its front matter has a value of a kind that settings do not have")
