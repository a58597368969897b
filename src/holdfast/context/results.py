"""What comes of observing a System Context: exactly one of the few things that can be done next."""

import msgspec

from holdfast.context.snapshot import Snapshot


class Initialized(msgspec.Struct, frozen=True):
    """A complete first baseline, and the snapshot that it leaves."""

    baseline: str
    snapshot: Snapshot


class Blocked(msgspec.Struct, frozen=True):
    """There is no complete baseline yet: sources or namespaces are unavailable. The keys are in order."""

    keys: tuple[str, ...]


class Unchanged(msgspec.Struct, frozen=True):
    """The model knows everything that can be known now; baseline and snapshot stay as they are."""


class Updated(msgspec.Struct, frozen=True):
    """The text of one Mid-Conversation System Message, and the snapshot that must be stored with it.

    The text is empty when no source has a text for its change: the snapshot is stored, and no
    message.
    """

    text: str
    snapshot: Snapshot


class ReplacementReady(msgspec.Struct, frozen=True):
    """A fresh baseline, with its snapshot: a new epoch begins."""

    baseline: str
    snapshot: Snapshot


class ReplacementBlocked(msgspec.Struct, frozen=True):
    """A fresh baseline is needed, but would lose the texts of these admitted sources: they are unavailable.

    The old baseline and its snapshot stay in force. The keys are in order.
    """

    keys: tuple[str, ...]


Initialization = Initialized | Blocked
Replacement = ReplacementReady | ReplacementBlocked
Reconciliation = Unchanged | Updated | ReplacementReady | ReplacementBlocked
