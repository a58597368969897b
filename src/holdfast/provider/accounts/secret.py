"""A text that must not be seen: it has no repr, no str and no JSON form. And what carries one."""

from typing import Literal

import msgspec


class Secret:
    """A key or a token. `reveal` is called where it goes onto the wire or into its file, and nowhere else."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


Origin = Literal["file", "opencode"]


class HostToken(msgspec.Struct, frozen=True):
    """A token that a host gave. `only`: the host chose the address, so no other key goes there."""

    secret: Secret | None
    only: bool


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """`variable` is the name that a host's token goes by, for `wellknown`."""

    type: Literal["api", "oauth", "wellknown"]
    secret: Secret
    origin: Origin
    variable: str | None = None
    metadata: dict[str, str] = {}
