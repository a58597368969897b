"""How an undo is shown: what became of each file, in a line, and for programs all of it."""

from typing import TYPE_CHECKING, Final

import click
import msgspec

from holdfast.cli import color
from holdfast.cli.output import clean, note, print_json
from holdfast.cli.session.patch_text import print_patch

if TYPE_CHECKING:
    from holdfast.sessions.undo.result import Undo, UndoneFile

SHOWN_MAX: Final = 1_000
_COLOURS: Final = {"conflict": "red", "not covered": "yellow", "deleted": "magenta", "merged": "cyan"}


def print_undo(undo: "Undo", form: str) -> None:
    """What became of each file, or would, then with its diff; `form` is that of `--format`."""
    if form == "json":
        value = {"session": undo.session.id, "done": undo.done, "files": undo.files, "notes": undo.notes}
        print_json(msgspec.to_builtins(value))
        return
    print_files(undo, diffs=not undo.done)
    id = undo.session.id
    if not undo.done:
        note("Nothing was changed.")
    elif undo.session.revert is not None:
        note(
            f"Reverted {id}; `holdfast session unrevert {id}` brings it back, the next prompt makes it last."
        )
    else:
        note(f"{id} has no staged revert.")


def print_files(undo: "Undo", *, diffs: bool = False, beside: bool = False) -> None:
    """A line a file, and what could not be known; `beside`: on standard error."""
    for each in undo.files[:SHOWN_MAX]:
        click.echo(_line(each), err=beside, color=color.wanted())
        if diffs and each.patch:
            print_patch(each.patch)
    if len(undo.files) > SHOWN_MAX:
        note(f"And {len(undo.files) - SHOWN_MAX} more files; --format json has all of them.")
    for text in undo.notes:
        note(text)


def _line(each: "UndoneFile") -> str:
    numbers = f" (+{each.additions} -{each.deletions})" if each.status is not None else ""
    lines = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in each.lines)
    why = [each.reason] if each.reason else []
    why += [f"lines {lines}"] if lines else []
    why += ["by a command, or by you meanwhile"] if each.observed else []
    told = f"  {'; '.join(why)}" if why else ""
    outcome = click.style(f"{each.outcome:<11}", fg=_COLOURS.get(each.outcome))
    return f"{outcome} {clean(each.path)}{numbers}{click.style(clean(told), dim=True)}"
