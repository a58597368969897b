"""The box around one command, as a tool sees it: how it is confined, and what the box stopped."""

from typing import Protocol

from holdfast.schema.wire import JsonMap


class Box(Protocol):
    """One command's box. It is asked for before the command, given to `spawn`, and asked again afterwards."""

    @property
    def facts(self) -> JsonMap:
        """For the call's metadata, under `sandbox`: level, mode, network, and what was `stopped`."""

    @property
    def may_leave(self) -> bool:
        """Whether the model may ask to run the command outside of a box."""

    @property
    def failure(self) -> str | None:
        """Why the command never ran, once it has ended; None where it ran."""

    async def stopped(self, output: str) -> list[str]:
        """What the box stopped, in words, once the command has ended: found in its output and counted by the
        kernel.
        """

    async def changed(self) -> list[str]:
        """Settings, plugins and instruction files that the command has changed, once it has ended."""
