"""What this process made of a session for its last request: the next one is made from there."""

from holdfast.provider.request.lowering import Lowered
from holdfast.provider.request.prefix import Names


class LastRequest:
    """The parts of the last request of one session."""

    def __init__(self) -> None:
        self.lowered = Lowered()
        """What was made of messages for a model."""
        self.names = Names()
        """The names of its blocks."""
        self.sent: tuple[str, list[str]] | None = None
        """The message that answers it, and the names of its blocks."""
