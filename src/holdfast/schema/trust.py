"""Whether a person trusts the files of a directory on a host to configure the agent."""

from holdfast.schema.times import Created
from holdfast.schema.wire import Record


class Trust(Record, frozen=True, kw_only=True):
    """`path` is the real path, links resolved. A refusal is remembered as well: `granted` is then false."""

    id: str
    host: str
    path: str
    granted: bool
    time: Created
