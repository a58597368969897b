"""What the owner's process orders of a launcher: built-in types only, as they come out of `marshal`."""


class Orders:
    """One start. Paths are real: a link in one of them means that it was exchanged, and ends the start."""

    def __init__(
        self,
        *,
        namespaces: bool,
        network: bool,
        write: list[str],
        revealed: list[str],
        hidden: list[str],
        pinned: list[str],
        protected: list[str],
        caches: list[tuple[str, str | None]],
        temporary: str | None,
        sockets: list[str],
        report: int | None,
        session: tuple[int, int] | None,
    ) -> None:
        self.namespaces = namespaces
        """False: this host has none, and only Landlock and seccomp are put in force."""
        self.network = network
        self.write = write
        self.revealed = revealed
        self.hidden = hidden
        self.pinned = pinned
        self.protected = protected
        self.caches = caches
        """Folders that are overlaid, each with the folder that keeps what is written."""
        self.temporary = temporary
        """The folder that also stands in the place of /tmp."""
        self.sockets = sockets
        """Named sockets, or folders of them, that stay reachable."""
        self.report = report
        """Where init writes what the kernel counted; the command never has it."""
        self.session = session
        """The user and the network namespace that the commands of a session share."""
