"""The times that several records share, in Unix milliseconds."""

from holdfast.schema.wire import Count, Wire


class Created(Wire, frozen=True, kw_only=True):
    """When something came to be."""

    created: Count


class Span(Wire, frozen=True, kw_only=True):
    """When something began and, once it is over, ended."""

    start: Count
    end: Count | None = None
