"""Sources of plugins: held to their own namespace, and kept from stopping a session.

What must stay true: a plugin that fails or is slow stops nothing. What it gave before holds meanwhile, so
its fault makes the source unavailable; where nothing was yet, absent, so that no baseline waits for
it. A plugin that is taken away does not end an epoch.
"""

from typing import Any, Final

import anyio
from msgspec.structs import replace

from holdfast.context.source import ABSENT, UNAVAILABLE, ContextSource, Missing
from holdfast.context.sources.look import Warn
from holdfast.errors import InvalidInput

WAIT_S: Final = 4.0
"""Less than a source has in all (`system_context.LIMIT_S`)."""
TEXT_CHARS_MAX: Final = 64 * 1024
RESERVED: Final = "core/"

_REASON_MAX = 200


def guarded(source: ContextSource[Any], *, was_admitted: bool = False, warn: Warn) -> ContextSource[Any]:
    """The source of a plugin as it is put among others. `was_admitted`: the model has its text."""
    if source.key.startswith(RESERVED):
        raise InvalidInput(f"the key {source.key} belongs to Holdfast; a plugin uses a name of its own")

    async def load() -> Any | Missing:
        try:
            with anyio.fail_after(WAIT_S):
                value = await source.load()
            if not isinstance(value, Missing):
                _check(source, value)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:_REASON_MAX]
            holds = "stays as it was told" if was_admitted else "is left out"
            warn(f"the context of plugin source {source.key} {holds}: {reason}")
            return UNAVAILABLE if was_admitted else ABSENT
        return value

    def update(before: Any, now: Any) -> str:
        return _bounded(source.update(before, now))

    def removal(value: Any) -> str:
        reason = source.removal(value) if source.removal is not None else ""
        return reason or f"What you were told under {source.key} no longer applies."

    return replace(source, load=load, update=update, removal=removal)


def _check(source: ContextSource[Any], value: Any) -> None:
    """Every text of it can be rendered, and is bounded, as far as one value can show it."""
    read = source.codec.decode(source.codec.encode(value))
    texts = [source.baseline(read), source.update(read, read)]
    texts += [] if source.removal is None else [source.removal(read)]
    for text in texts:
        _bounded(text)


def _bounded(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidInput("its text is no text")
    if len(text) > TEXT_CHARS_MAX:
        raise InvalidInput(f"its text has more than {TEXT_CHARS_MAX:,} characters")
    return text
