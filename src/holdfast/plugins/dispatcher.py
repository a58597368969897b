"""Calls plugins: in the order of their registration, each on copies, each within a time limit.

What must stay true: a plugin that raises, hangs, exits or leaves nonsense behind costs its own change and a
notice, never the session; the next plugin sees what the one before it made, and what it did to its input is
seen nowhere. Cancellation from outside passes through. A hook whose time is over is abandoned (`hook_run`),
and a plugin whose time was over `TIMEOUTS_MAX` times is called no more, so that its threads do not pile up.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeVar

import msgspec

from holdfast.context.source import ContextSource
from holdfast.plugins.hook_run import HookRun
from holdfast.plugins.hooks import Hook, HookInput, HookOutput
from holdfast.schema import wire
from holdfast.toolkit.declare import Tool

I = TypeVar("I", bound=HookInput)  # noqa: E741 - input
O = TypeVar("O", bound=HookOutput)  # noqa: E741 - output

LIMIT_S = 10.0
TIMEOUTS_MAX = 3


class Plugin(msgspec.Struct, frozen=True):
    """A plugin by name, with where it came from. `hooks` is any object with methods named as hooks are;
    `tools` and `sources` are those that it brings.
    """

    name: str
    origin: str
    hooks: Any
    tools: tuple[Tool, ...] = ()
    sources: tuple[ContextSource[Any], ...] = ()


class Trouble(msgspec.Struct, frozen=True):
    """What went wrong in a plugin, in one line."""

    plugin: str
    hook: str
    message: str

    def __str__(self) -> str:
        return f"plugin {self.plugin}, {self.hook}: {self.message}"


class Dispatcher:
    """The plugins of one runtime."""

    def __init__(
        self, plugins: Sequence[Plugin], report: Callable[[Trouble], None], *, limit_s: float = LIMIT_S
    ) -> None:
        self.plugins = tuple(plugins)
        self._report = report
        self._limit_s = limit_s
        self._timeouts = [0] * len(self.plugins)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the plugins bring, in their order; of two with one name the later one."""
        return tuple({tool.name: tool for plugin in self.plugins for tool in plugin.tools}.values())

    @property
    def sources(self) -> tuple[ContextSource[Any], ...]:
        """The Context Sources that the plugins bring; of two with one key the later one."""
        return tuple({source.key: source for plugin in self.plugins for source in plugin.sources}.values())

    def wants(self, hook: Hook[Any, Any]) -> bool:
        """Whether any plugin takes part, so that no input is made without need."""
        return any(self._takers(hook))

    async def call(self, hook: Hook[I, O], input: I, output: O) -> O:
        """`output` as the plugins leave it."""
        for index, method in tuple(self._takers(hook)):
            plugin = self.plugins[index]
            changed = deepcopy(output)
            try:
                raised = await HookRun(method, deepcopy(input), changed).wait(self._limit_s)
            except TimeoutError:
                self._trouble(plugin, hook, f"took longer than {self._limit_s:g} s; its change was dropped")
                self._slow(index, hook)
                continue
            if raised is None:
                try:
                    output = _sound(changed)
                    continue
                except Exception as error:  # noqa: BLE001 - what is left behind may be anything
                    raised = error
            self._trouble(plugin, hook, f"{type(raised).__name__}: {raised}")
        return output

    def _takers(self, hook: Hook[Any, Any]) -> Iterator[tuple[int, Callable[..., Any]]]:
        for index, plugin in enumerate(self.plugins):
            method = getattr(plugin.hooks, hook.method, None)
            if callable(method) and self._timeouts[index] < TIMEOUTS_MAX:
                yield index, method

    def _slow(self, index: int, hook: Hook[Any, Any]) -> None:
        self._timeouts[index] += 1
        if self._timeouts[index] == TIMEOUTS_MAX:
            self._trouble(
                self.plugins[index], hook, f"its time was over {TIMEOUTS_MAX} times; it is called no more"
            )

    def _trouble(self, plugin: Plugin, hook: Hook[Any, Any], message: str) -> None:
        line = " ".join(message.split())[:300]
        self._report(Trouble(plugin.name, hook.name, line))


def _sound(output: O) -> O:
    """The output, if it still has its type; plugins are not bound by annotations."""
    checked: O = wire.decode(type(output), wire.encode(output))
    return checked
