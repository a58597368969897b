"""A model on this machine that is none: the program `serving.py` answers for it."""

import sys
from pathlib import Path

from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.local.catalogue import ADDRESS
from holdfast.provider.wire.wire import Endpoint

SERVING = Path(__file__).with_name("serving.py")
MODEL = Model(provider_id="local", id="smollm2", api_id="smollm2", name="SmolLM2", wire=WireKind.OPENAI_CHAT)
OURS = Endpoint(base_url=ADDRESS)


def command(how: str) -> tuple[str, ...]:
    """The program, which behaves in the way that `how` names."""
    return (sys.executable, str(SERVING), how)
