"""`holdfast import …`: sessions of other tools."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.import_report import print_report
from holdfast.cli.lazy import LazyGroup
from holdfast.cli.open_store import with_holdfast
from holdfast.cli.output import format_option
from holdfast.errors import ContextError, InvalidInput

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.store.exchange.portable.report import ImportReport


@click.group(
    cls=LazyGroup,
    table={"opencode": ("holdfast.cli.import_:opencode", "What OpenCode keeps of its sessions.")},
)
def importing() -> None:
    """Bring sessions from another tool. Its own data is only read."""


@click.command()
@click.argument("path", metavar="[PATH]", required=False)
@format_option
@click.pass_context
def opencode(ctx: click.Context, *, path: str | None, form: str) -> None:
    """Import what OpenCode keeps: its data directory, a storage tree, or an opencode.db.

    Without PATH, the directory where OpenCode keeps it. A second run brings only what is new.
    """

    async def work(hf: "Holdfast") -> "ImportReport":
        from holdfast.store.exchange.opencode.find import find_opencode
        from holdfast.store.exchange.opencode.import_sessions import import_opencode

        source = Path(path) if path is not None else find_opencode()
        return await import_opencode(
            hf.store,
            source,
            mint=hf.mint,
            clock=hf.clock,
            host=hf.host,
            progress=_progress(),
            project_of=_project_of,
        )

    print_report(with_holdfast(ctx, work, create=True), form)


def _project_of(directory: str) -> str | None:
    """The project of a directory that OpenCode worked in, if it is still there."""
    from holdfast.location.project import locate

    try:
        return locate(directory).project
    except (InvalidInput, ContextError):
        return None


class _Progress:
    """A line that is written over while a terminal watches."""

    def __call__(self, done: int, total: int, what: str) -> None:
        end = "\n" if done == total else ""
        sys.stderr.write(f"\r\x1b[K{what} {done} of {total}{end}")
        sys.stderr.flush()


def _progress() -> _Progress | None:
    return _Progress() if sys.stderr.isatty() else None
