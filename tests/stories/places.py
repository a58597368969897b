"""What tests about placements share."""

from holdfast.store.host import ThisHost


class Machine(ThisHost):
    """A machine of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def id(self) -> str:
        return self._name

    @property
    def pid_namespace(self) -> str:
        return self._name
