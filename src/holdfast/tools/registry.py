"""Which tools there are: a Location's own over those of the whole application.

The latest registration of a name wins; closing it reveals the one before. What must stay true: a call is
carried out by the very registration whose definition the model was shown, or refused as stale.
"""

from collections.abc import Callable, Iterable

from holdfast.toolkit.declare import Tool, check_name


class Registration:
    """One tool under its name, until it is closed."""

    def __init__(self, tool: Tool, registry: "Registry") -> None:
        self.tool = tool
        self._registry = registry

    def close(self) -> None:
        """Take the tool away; whatever it hid comes back."""
        self._registry._remove(self)  # noqa: SLF001 - the other half of this class


class Registry:
    """Tools by name. `below` is the application's registry, for a Location's. `absent` says why a name that
    the model was shown earlier is not there now, if it knows.
    """

    def __init__(
        self, below: "Registry | None" = None, *, absent: Callable[[str], str | None] = lambda _: None
    ) -> None:
        self._below = below
        self._absent = absent
        self._stacks: dict[str, list[Registration]] = {}

    def register(self, tool: Tool) -> Registration:
        """Offer a tool from now on."""
        check_name(tool.name)
        registration = Registration(tool, self)
        self._stacks.setdefault(tool.name, []).append(registration)
        return registration

    def _remove(self, registration: Registration) -> None:
        stack = self._stacks.get(registration.tool.name, [])
        if registration in stack:
            stack.remove(registration)
        if not stack:
            self._stacks.pop(registration.tool.name, None)

    def current(self, name: str) -> Registration | None:
        """The registration that a call of this name would reach now."""
        stack = self._stacks.get(name)
        if stack:
            return stack[-1]
        return None if self._below is None else self._below.current(name)

    def why_absent(self, name: str) -> str | None:
        """Why there is no tool of this name, in words for the model; None where nothing more is known."""
        why = self._absent(name)
        return why if why is not None or self._below is None else self._below.why_absent(name)

    def names(self) -> set[str]:
        """Every name that can be called."""
        return set(self._stacks) | (set() if self._below is None else self._below.names())

    def keys(self) -> dict[str, str]:
        """By name, the permission that each tool is judged by."""
        found = {name: self.current(name) for name in self.names()}
        return {name: each.tool.permission for name, each in found.items() if each is not None}

    def materialise(self, *, without: Iterable[str] = ()) -> "Toolset":
        """The tools as they are at this moment, for one turn."""
        hidden = set(without)
        shown = {name: self.current(name) for name in sorted(self.names() - hidden)}
        return Toolset(self, {name: found for name, found in shown.items() if found is not None})


class Toolset:
    """The tools that one turn shows its model."""

    def __init__(self, registry: Registry, shown: dict[str, Registration], own: Tool | None = None) -> None:
        self._registry = registry
        self._shown = shown
        self._own = own

    def plus(self, own: Tool) -> "Toolset":
        """The same, with a tool of this turn alone."""
        return Toolset(self._registry, self._shown, own)

    @property
    def tools(self) -> list[Tool]:
        """In the order of their names; the turn's own comes last."""
        shown = [registration.tool for registration in self._shown.values()]
        return shown if self._own is None else [*shown, self._own]

    def find(self, name: str) -> Tool | None:
        """The tool of a call; a name in another case is forgiven, since models vary it."""
        if self._own is not None and name == self._own.name:
            return self._own
        found = self._shown.get(name) or self._shown.get(name.lower())
        return None if found is None else found.tool

    def why_absent(self, name: str) -> str | None:
        """Why there is no tool of this name, if that is known."""
        return self._registry.why_absent(name)

    def is_stale(self, name: str) -> bool:
        """Whether the tool was replaced or taken away since the model was shown it."""
        found = self._shown.get(name) or self._shown.get(name.lower())
        return found is not None and self._registry.current(found.tool.name) is not found
