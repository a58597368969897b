"""The provider `local` as the catalogue has it: what can be installed, and whether it can be used now.

What must stay true: the user's own provider that happens to be called `local` is left alone.
"""

import importlib.util
from collections.abc import Mapping

from holdfast.provider.catalog import packages, snapshot
from holdfast.provider.catalog.snapshot import Place, Snapshot, Source
from holdfast.provider.local import installable
from holdfast.schema.provider_entry import ProviderEntry
from holdfast.version import __version__

ID = "local"
ADDRESS = "http://127.0.0.1:0/v1"
"""Stands for the server that is started on demand (`server.py`): nothing can listen on port 0."""

EXTRA = "xllamacpp"


def snapshots(entries: Mapping[str, ProviderEntry]) -> tuple[Snapshot, ...]:
    """What to put after the other catalogues; nothing where the settings say what `local` is."""
    entry = entries.get(ID)
    if entry is not None and (entry.npm or entry.api or entry.options.get("baseURL")):
        return ()
    models = {model.id: model.entry for model in installable.INSTALLABLE.values()}
    place = Place(name="This machine", npm=_package(), api=ADDRESS)
    data = snapshot.encode("", (Source(name="holdfast", version=__version__),), {ID: (place, models)})
    return (Snapshot(data, "the table of local models"),)


def has_extra() -> bool:
    """Whether the optional extra `local` is installed."""
    return importlib.util.find_spec(EXTRA) is not None


def _package() -> str:
    if not has_extra():
        return packages.LOCAL_WITHOUT_EXTRA
    if not any(installable.file(model).is_file() for model in installable.INSTALLABLE.values()):
        return packages.LOCAL_WITHOUT_MODEL
    return packages.LOCAL
