"""Whether stored JSON is what its kind says."""

from holdfast.errors import HoldfastError
from holdfast.schema import stored
from holdfast.schema.stored import Kind


def complaint(kind: Kind, data: bytes, *, id: str, session: str, parent: str | None) -> str | None:
    """What is wrong with a record's JSON; None when nothing is."""
    try:
        stored.load(kind, data, id=id, session=session, parent=parent)
    except HoldfastError as error:
        return str(error)
    return None
