"""Calls plugins: in the order of their registration, each on a copy, each within a time limit.

What must stay true: a plugin that raises, hangs or leaves nonsense behind costs its own change and a notice,
never the session; the next plugin sees what the one before it made. Cancellation from outside passes through.
A plain function cannot be stopped: when its time is over its thread is left to end by itself, and what it
does later reaches nobody, since it holds a copy.
"""

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import msgspec

from holdfast.plugins.hooks import HOOKS, Changeable, Hook, Told
from holdfast.schema import wire

I = TypeVar("I", bound=Told)  # noqa: E741 - input
O = TypeVar("O", bound=Changeable)  # noqa: E741 - output

LIMIT_S = 10.0


class Plugin(msgspec.Struct, frozen=True):
    """A plugin by name, with where it came from. `hooks` is any object with methods named as hooks are."""

    name: str
    origin: str
    hooks: Any


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
        # Most hooks have no taker: to ask costs one look-up.
        self._takers: dict[str, list[tuple[Plugin, Callable[..., Any]]]] = {
            hook.name: [
                (plugin, method)
                for plugin in self.plugins
                if callable(method := getattr(plugin.hooks, hook.method, None))
            ]
            for hook in HOOKS
        }

    def wants(self, hook: Hook[Any, Any]) -> bool:
        """Whether any plugin takes part, so that an input need not be made for nobody."""
        return bool(self._takers[hook.name])

    async def call(self, hook: Hook[I, O], input: I, output: O) -> O:
        """`output` as the plugins leave it."""
        for plugin, method in self._takers[hook.name]:
            changed = deepcopy(output)
            try:
                with anyio.fail_after(self._limit_s):
                    await self._run(method, input, changed)
                output = _sound(changed)
            except TimeoutError:
                self._trouble(plugin, hook, f"took longer than {self._limit_s:g} s; its change was dropped")
            except Exception as error:  # noqa: BLE001 - a plugin may raise anything
                self._trouble(plugin, hook, f"{type(error).__name__}: {error}")
        return output

    async def _run(self, method: Callable[..., Any], input: object, output: object) -> None:
        if inspect.iscoroutinefunction(method):
            await method(input, output)
            return
        made = await anyio.to_thread.run_sync(method, input, output, abandon_on_cancel=True)
        if inspect.isawaitable(made):
            await made

    def _trouble(self, plugin: Plugin, hook: Hook[Any, Any], message: str) -> None:
        line = " ".join(message.split())[:300]
        self._report(Trouble(plugin.name, hook.name, line))


def _sound(output: O) -> O:
    """The output, if it still has its type; plugins are not bound by annotations."""
    checked: O = wire.decode(type(output), wire.encode(output))
    return checked
