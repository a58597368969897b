"""The System Context Registry of one Location: who contributes to its System Context.

A contribution is a producer under a key; its sources have that key, or lie beneath it. What must stay true:
the context is in the order of the contributions' keys, not of registration or answer; a closed
registration contributes nothing to the next context, so its sources are removed at the next boundary; a
producer that fails, takes too long, or makes sources elsewhere leaves everything beneath its key unavailable,
which removes nothing.
"""

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from types import TracebackType
from typing import Self

import anyio

from holdfast.context import keys
from holdfast.context.attempt import FailedAttempt, attempt
from holdfast.context.system_context import LIMIT_S, SystemContext
from holdfast.errors import Conflict, ContextError

Producer = Callable[[], Awaitable[SystemContext] | SystemContext]


class Registration:
    """One contribution, until it is closed."""

    def __init__(self, key: str, producer: Producer, registry: "SystemContextRegistry") -> None:
        self.key = key
        self.producer = producer
        self._registry = registry

    def close(self) -> None:
        """Contribute no more. To close twice is to close once."""
        self._registry._remove(self)  # noqa: SLF001 - the other half of this class

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SystemContextRegistry:
    """Contributions by key.

    `beside` are the registries whose contributions stand in the same contexts, `reserved` the namespaces of
    sources that stand there too: registering a key twice is refused at once.
    """

    def __init__(
        self,
        *,
        beside: "Callable[[], Iterable[SystemContextRegistry]]" = lambda: (),
        reserved: Collection[str] = (),
    ) -> None:
        self._registrations: dict[str, Registration] = {}
        self._beside = beside
        self._reserved = reserved

    def register(self, key: str, producer: Producer) -> Registration:
        """Contribute from the next context on, until the registration is closed."""
        namespace = keys.check(key).partition("/")[0]
        if namespace in self._reserved:
            raise Conflict(f"{key}: keys beneath {namespace}/ are those of built-in sources; choose another")
        if any(registry.has(key) for registry in (self, *self._beside())):
            raise Conflict(f"the system context has a contribution {key} already; close it first")
        registration = Registration(key, producer, self)
        self._registrations[key] = registration
        return registration

    def has(self, key: str) -> bool:
        """Whether there is a contribution of this very key."""
        return key in self._registrations

    def _remove(self, registration: Registration) -> None:
        # A later registration may have the key by now.
        if self._registrations.get(registration.key) is registration:
            del self._registrations[registration.key]

    async def load(
        self, *, limit_s: float = LIMIT_S, twice: Callable[[str], None] | None = None
    ) -> SystemContext:
        """The context of this moment: every producer is asked once, all at the same time.

        One contribution may lie beneath another, so two of them may make one source: `combine` says what
        `twice` is for.
        """
        registrations = [self._registrations[key] for key in sorted(self._registrations)]
        made: dict[str, SystemContext] = {}

        async def one(registration: Registration) -> None:
            contributed = await attempt(partial(_contributed, registration), limit_s=limit_s)
            if isinstance(contributed, FailedAttempt):
                contributed = SystemContext.unavailable(registration.key, contributed.reason)
            made[registration.key] = contributed

        async with anyio.create_task_group() as group:
            for registration in registrations:
                group.start_soon(one, registration)
        return SystemContext.combine(*(made[registration.key] for registration in registrations), twice=twice)


async def _contributed(registration: Registration) -> SystemContext:
    """What the producer makes, if it is a context and keeps to its key."""
    made: object = registration.producer()
    if inspect.isawaitable(made):
        made = await made
    if not isinstance(made, SystemContext):
        raise ContextError(f"its producer made no system context but {type(made).__name__}")
    for key in made.keys:
        if not keys.is_within(key, registration.key):
            raise ContextError(f"its producer made the source {key}, which is not beneath its key")
    return made
