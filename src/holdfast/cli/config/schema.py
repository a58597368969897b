"""`holdfast config schema`."""

import sys

import click


@click.command()
def schema() -> None:
    """Print the JSON schema of settings files, for editors."""
    from holdfast.config.layers import editor_schema

    sys.stdout.buffer.write(editor_schema.encoded())
