"""`holdfast session export`."""

import os
import secrets
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.naming import session_argument
from holdfast.cli.opening import with_holdfast
from holdfast.cli.output import note
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.app import Holdfast


@click.command()
@session_argument
@click.option("-o", "--output", metavar="FILE", default="-", help="Where to write; - is standard output.")
@click.option("--descendants", is_flag=True, help="With the sessions below it.")
@click.option("--opencode", is_flag=True, help="In the format that `opencode import` reads.")
@click.option("--sanitize", is_flag=True, help="With --opencode: without texts, paths and contents.")
@click.pass_context
def export(
    ctx: click.Context, *, name: str, output: str, descendants: bool, opencode: bool, sanitize: bool
) -> None:
    """Write a session to one JSON file, which `holdfast session import` reads.

    It holds everything that was said, secrets included: look before you share it.
    """
    if sanitize and not opencode:
        raise click.UsageError("--sanitize goes with --opencode")
    if descendants and opencode:
        raise click.UsageError("OpenCode's format holds one session; leave --descendants out")
    if output != "-" and Path(output).exists():
        raise InvalidInput(f"{output} exists already; name another file")

    async def work(hf: "Holdfast") -> int:
        from holdfast.store.portable.exporting import export_session
        from holdfast.store.portable.opencode_file import export_opencode

        session = (await hf.sessions.named(name)).id
        if opencode:
            pieces = export_opencode(hf.store, session, sanitize=sanitize)
        else:
            pieces = export_session(hf.store, session, descendants=descendants)
        return await _write(pieces, output)

    size = with_holdfast(ctx, work)
    if output != "-":
        note(f"Wrote {size} bytes to {output}.")


async def _write(pieces: AsyncIterator[bytes], output: str) -> int:
    """Write to a file of another name first: what stands under the given one is always whole."""
    size = 0
    if output == "-":
        async for piece in pieces:
            sys.stdout.buffer.write(piece)
            size += len(piece)
        return size
    target = Path(output)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            async for piece in pieces:
                file.write(piece)
                size += len(piece)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return size
