"""The file that holds the catalogue: a line that says where everything is, then a line for each provider.

One model can be had without decoding the others: the head gives the place of its provider's line, and in that
line each model is decoded by itself. The bundled file and the refreshed one have the same form. Written by
`scripts/catalogue` and by `refresh.py`.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from holdfast.errors import ContextError
from holdfast.schema import typed
from holdfast.schema.provider_entry import ModelEntry

FORMAT = 1
NUMBERS = msgspec.json.Encoder(decimal_format="number", order="deterministic")


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where facts come from: a package and its version, or an address."""

    name: str
    version: str = ""


class Place(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the head says of a provider; `start` and `size` place its line, in bytes after the head."""

    name: str
    npm: str
    env: tuple[str, ...] = ()
    api: str | None = None
    start: int = 0
    size: int = 0
    count: int = 0


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line. `date` (YYYY-MM-DD) is the day on which the facts were gathered."""

    format: int
    date: str
    sources: tuple[Source, ...]
    providers: dict[str, Place]


class Snapshot:
    """A catalogue that is decoded as far as it is asked."""

    def __init__(self, data: bytes, name: str = "the catalogue") -> None:
        end = data.find(b"\n") + 1
        try:
            self.head = typed.decode(data[:end], Head)
        except msgspec.MsgspecError as error:
            raise ContextError(f"{name} cannot be read: {error}") from error
        if self.head.format != FORMAT:
            raise ContextError(f"{name} has the format {self.head.format}, and this version reads {FORMAT}")
        self._name = name
        self._lines = memoryview(data)[end:]

    def models(self, provider: str) -> dict[str, msgspec.Raw]:
        """The models of a provider, each still encoded; none for one that is not in the catalogue."""
        place = self.head.providers.get(provider)
        if place is None:
            return {}
        line = self._lines[place.start : place.start + place.size]
        try:
            return msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        except msgspec.MsgspecError as error:
            raise ContextError(f"{self._name} cannot be read at {provider}: {error}") from error

    def model(self, raw: msgspec.Raw) -> ModelEntry:
        """One of them, decoded."""
        try:
            return typed.decode(raw, ModelEntry)
        except msgspec.MsgspecError as error:
            raise ContextError(f"{self._name} cannot be read at a model: {error}") from error


def encode(
    date: str,
    sources: tuple[Source, ...],
    providers: Mapping[str, tuple[Place, Mapping[str, ModelEntry]]],
) -> bytes:
    """The file for these providers, in the order of their ids."""
    places: dict[str, Place] = {}
    lines: list[bytes] = []
    start = 0
    for id, (place, models) in sorted(providers.items()):
        line = NUMBERS.encode(dict(sorted(models.items()))) + b"\n"
        places[id] = msgspec.structs.replace(place, start=start, size=len(line), count=len(models))
        lines.append(line)
        start += len(line)
    head = NUMBERS.encode(Head(format=FORMAT, date=date, sources=sources, providers=places))
    return b"".join([head, b"\n", *lines])


@cache
def bundled() -> Snapshot:
    """The catalogue that came with this version."""
    # importlib.resources would cost 6 ms of every start that needs a model.
    data = Path(__file__).with_name("data").joinpath("catalogue.jsonl").read_bytes()
    return Snapshot(data, "the bundled catalogue")
