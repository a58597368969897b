"""What others need to test against Holdfast: fakes, and suites that a replacement part must pass.

The names below are loaded when they are first used; the suite that a storage engine must pass,
`holdfast.testing.store_contract`, needs pytest and is imported by its own name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.testing.clock import FakeClock
    from holdfast.testing.mock_provider.script import Call, Say, Think, Usage
    from holdfast.testing.scripted_provider import (
        Events,
        Fail,
        ScriptedProvider,
        ScriptFailed,
        Step,
        Wait,
        answered,
    )

__all__ = [
    "Call",
    "Events",
    "Fail",
    "FakeClock",
    "Say",
    "ScriptFailed",
    "ScriptedProvider",
    "Step",
    "Think",
    "Usage",
    "Wait",
    "answered",
]

# The names of `__all__`, by the module that has them. A test compares the three lists.
_NAMES = {
    "holdfast.testing.clock": "FakeClock",
    "holdfast.testing.mock_provider.script": "Call Say Think Usage",
    "holdfast.testing.scripted_provider": ("Events Fail ScriptFailed ScriptedProvider Step Wait answered"),
}
_MODULE = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # A type checker that saw it would accept any name.

    def __getattr__(name: str) -> object:
        """Load a name when it is first used."""
        if (module := _MODULE.get(name)) is None:
            raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(module), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
