"""Puts tool calls together from their fragments.

A fragment belongs to the call of its index; without one, to the call of its id, else to the latest. Servers
that give every call the index 0 are known by their ids: a new id with a name is a new call. An id may come
late or never: the call is announced once it has an id and a name, and one without an id gets it, at the end,
from what is known of it, so that the same stream gives the same id. An id that an earlier call of the answer
has is made different: two calls differ by nothing else. A call that comes again when all were
complete is the same call, sent twice.
"""

import hashlib
from typing import Any

import msgspec

from holdfast.provider.request import pieces
from holdfast.provider.request.events import (
    ProviderEvent,
    ToolCalled,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from holdfast.provider.wire.openai_chat.chunk import ToolFragment
from holdfast.provider.wire.openai_chat.messages import OWN


class _Call:
    __slots__ = ("announced", "extra", "given", "id", "index", "name", "pieces")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.given = ""  # the id in the stream
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.announced = False
        self.extra: Any = None

    def announce(self) -> list[ProviderEvent]:
        self.announced = True
        started: list[ProviderEvent] = [ToolInputStart(id=self.id, name=self.name)]
        if text := "".join(self.pieces):
            started.append(ToolInputDelta(id=self.id, text=text))
        return started


class CallPieces:
    """The calls of one answer."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._ids: set[str] = set()
        self._complete: set[str] = set()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, fragment: ToolFragment) -> list[ProviderEvent]:
        """What a fragment adds."""
        if fragment.id and fragment.id in self._complete:
            return []
        call = self._find(fragment)
        function = fragment.function
        text = ""
        if fragment.id and not call.id:
            call.given = fragment.id
            call.id = self._unique(fragment.id)
        if fragment.extra_content is not None:
            call.extra = fragment.extra_content
        if function is not None:
            if function.name and not call.announced:
                call.name = function.name
            if function.arguments is not None:
                text = _text(function.arguments)
        if text:
            call.pieces.append(text)
        if call.announced:
            return [ToolInputDelta(id=call.id, text=text)] if text else []
        return call.announce() if call.id and call.name else []

    def finish(self, response_id: str) -> list[ProviderEvent]:
        """Every call, complete, in the order in which they began. Without name and id there is none."""
        started: list[ProviderEvent] = []
        for number, call in enumerate(self._calls):
            text = "".join(call.pieces)
            if not call.name and not call.id:
                continue
            if not call.announced:
                seed = f"{response_id}\0{number}\0{call.name}\0{text}"
                digest = hashlib.sha256(seed.encode("utf-8", "replace")).hexdigest()[:24]
                call.id = call.id or self._unique(f"call_{digest}")
                call.name = pieces.read_name(call.name)
                started += call.announce()
            input, invalid = pieces.read_input(text)
            metadata = None if call.extra is None else {OWN: {"extra_content": call.extra}}
            started += [
                ToolInputEnd(id=call.id),
                ToolCalled(id=call.id, name=call.name, input=input, invalid=invalid, metadata=metadata),
            ]
        self._complete.update(call.given for call in self._calls)
        self._calls.clear()
        return started

    def _unique(self, id: str) -> str:
        made, count = id, 1
        while made in self._ids:
            count += 1
            made = f"{id}-{count}"
        self._ids.add(made)
        return made

    def _find(self, fragment: ToolFragment) -> _Call:
        if fragment.index is not None:
            found = next((call for call in reversed(self._calls) if call.index == fragment.index), None)
        elif fragment.id:
            found = next((call for call in self._calls if call.given == fragment.id), None)
        else:
            found = self._calls[-1] if self._calls else None
        other = found is not None and fragment.id and found.given and found.given != fragment.id
        if found is None or (other and fragment.function is not None and fragment.function.name):
            found = _Call(fragment.index)
            self._calls.append(found)
        return found


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
