"""What tests about opencode file share."""

from pathlib import Path
from typing import Any

import msgspec

REAL = Path(__file__).parent / "opencode-1.18.33"


def real(name: str) -> Any:
    made = msgspec.json.decode((REAL / name).read_bytes())
    del made["info"]["share"]  # the one thing that we leave out of what OpenCode writes
    return made
