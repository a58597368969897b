"""Projects on record: which id a checkout of this machine has."""

from collections.abc import Iterable

from holdfast.location.project import Checkout, Known
from holdfast.schema.project_records import CheckoutProject
from holdfast.store.record import StoredRecord


def remembered(entries: Iterable[StoredRecord]) -> Known:
    """A function from a checkout to the project id that this machine's cache records have for it."""
    values = [entry.value() for entry in entries]
    ids = {(value.key, value.etag): value.text for value in values if isinstance(value, CheckoutProject)}

    def known(checkout: Checkout) -> str | None:
        return ids.get((checkout.common, checkout.mark))

    return known
