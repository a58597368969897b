"""`holdfast providers discover`: model servers that run on this machine, and how to use them.

It changes nothing: the lines are for the user to put into their settings, where they also serve programs
without a user at its terminal.
"""

import os

import anyio
import click

from holdfast.cli.output import format_option, note, print_json, print_table
from holdfast.net.stream import Http
from holdfast.person import directories
from holdfast.provider.local import discover as local
from holdfast.provider.local.discover import Found


@click.command()
@format_option
def discover(*, form: str) -> None:
    """Ollama, LM Studio, llama.cpp and vLLM on their usual ports, if they are this user's own processes."""
    found = anyio.run(_find)
    if form == "json":
        print_json([_fields(one) for one in found])
        return
    if not found:
        ports = ", ".join(f"{name} {local.PORTS[kind]}" for kind, name in local.NAMES.items())
        note(
            f"No model server runs on its usual port ({ports}); `holdfast models install` has a small model."
        )
        return
    rows = [
        [
            one.name,
            one.base_url,
            str(len(one.models)),
            one.problem or "can be used once it is in the settings",
        ]
        for one in found
    ]
    print_table(["SERVER", "ADDRESS", "MODELS", "STATE"], rows, stretch=3)
    usable = [one for one in found if one.problem is None]
    if usable:
        note(f"To use it, put this into {directories.config() / 'holdfast.json'}:")
        print_json({"provider": {one.kind: local.settings(one) for one in usable}})


async def _find() -> tuple[Found, ...]:
    http = Http()
    try:
        return await local.find(http, uid=os.getuid())
    finally:
        await http.aclose()


def _fields(found: Found) -> dict[str, object]:
    return {
        "id": found.kind,
        "name": found.name,
        "url": found.base_url,
        "models": [{"id": model.id, "context": model.context or None} for model in found.models],
        "problem": found.problem,
        "settings": None if found.problem else local.settings(found),
    }
