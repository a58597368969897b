"""What this process built for a session's last request, so that the next one reuses it."""

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
