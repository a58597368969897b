"""What a command complains about when it fails: a line for people, or an object for programs.

Under `--format json` it is the last line of standard error, in the form that OpenCode gives its errors:
`{"name": "NotFoundError", "data": {"message": "…"}}`. Standard output holds an answer, or nothing.
"""

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from holdfast.errors import Ambiguous

SOMEWHERE = "system"
"""The place of an error of the system that does not say where it happened; `main.py` looks for it."""

CONFLICT = 4
"""The exit code for files that the user has changed where the agent had."""


class Complaint(NamedTuple):
    """The name of an error and its message on one line.

    `more` is what else a program may want to know; `before` are lines for people, above the message; `code`
    is the exit code.
    """

    name: str
    message: str
    more: dict[str, Any] = {}  # noqa: RUF012 - never changed
    before: tuple[str, ...] = ()
    code: int = 1


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the user asked for JSON; known before the arguments are parsed, which may be what fails."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--format=json" in options or any(pair == ("--format", "json") for pair in pairwise(options))


def of_error(error: BaseException) -> Complaint:
    """Name an error of ours, of the system, or of nobody's intention."""
    from holdfast.errors import Ambiguous, HoldfastError, UndoConflict

    if isinstance(error, Ambiguous):
        return _of_ambiguous(error)
    if isinstance(error, UndoConflict):
        files = [{"path": path, "reason": why, "lines": lines} for path, why, lines in error.files]
        return Complaint("UndoConflictError", str(error), {"files": files}, code=CONFLICT)
    if isinstance(error, HoldfastError):
        name = type(error).__name__
        return Complaint(name if name.endswith("Error") else f"{name}Error", str(error))
    if isinstance(error, OSError):
        return Complaint("SystemError", f"{error.filename or SOMEWHERE}: {error.strerror or error}")
    if isinstance(error, UnicodeEncodeError):
        text = f"{error.object[:60]!a} is not valid UTF-8, so no record can hold it; give another"
        return Complaint("InvalidInputError", text)
    what = f"internal error: {type(error).__name__}: {error} (HOLDFAST_DEBUG=1 shows where)"
    return Complaint("UnknownError", what)


def _of_ambiguous(error: "Ambiguous") -> Complaint:
    """A table of what the user may have meant."""
    from holdfast.cli import table
    from holdfast.cli.output import ago, clean, width
    from holdfast.sessions.session_name import MATCHES_MAX

    rows = [(id, ago(updated), clean(title)) for id, title, updated in error.candidates]
    lines = table.laid_out(("SESSION", "UPDATED", "TITLE"), rows, room=width(), stretch=2).lines
    if error.others:
        counted = "" if len(rows) + error.others < MATCHES_MAX else " or more"
        lines.append(f"… and {error.others:,}{counted} others")
    fields = [{"id": id, "title": title, "updated": updated} for id, title, updated in error.candidates]
    return Complaint(
        "AmbiguousError",
        f"{error.name[:60]!r} means more than one session; give more of the id",
        {"candidates": fields, "others": error.others},
        tuple(lines),
    )


def text_of(complaint: Complaint, *, as_json: bool) -> str:
    """The line, below what goes before it for people."""
    before = () if as_json else complaint.before
    return "".join(f"{line}\n" for line in before) + line_of(complaint, as_json=as_json)


def line_of(complaint: Complaint, *, as_json: bool) -> str:
    """One line, with nothing in it that a terminal would obey."""
    message = " ".join(complaint.message.split())
    if as_json:
        import json

        body = {"name": complaint.name, "data": {"message": message, **complaint.more}}
        return f"{json.dumps(body)}\n"
    shown = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in message)
    return f"holdfast: {shown}\n"


def complain(complaint: Complaint, *, as_json: bool) -> None:
    """Print a complaint from within a command, which ends with its exit code. If it cannot be, it is lost."""
    from contextlib import suppress

    with suppress(OSError):
        sys.stderr.write(line_of(complaint, as_json=as_json))
        sys.stderr.flush()
