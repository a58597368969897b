"""An agent: who answers, with which instructions, model and permissions."""

from holdfast.schema.config import AgentMode
from holdfast.schema.model import ModelRef
from holdfast.schema.permission import Ruleset
from holdfast.schema.wire import JsonMap, Num, Wire


class Agent(Wire, frozen=True, kw_only=True):
    """`native` agents come with us. `steps` bounds the turns of one prompt; `options` go to the model."""

    name: str
    description: str | None = None
    mode: AgentMode
    native: bool | None = None
    hidden: bool | None = None
    top_p: Num | None = None
    temperature: Num | None = None
    color: str | None = None
    permission: Ruleset
    model: ModelRef | None = None
    variant: str | None = None
    prompt: str | None = None
    options: JsonMap
    steps: int | None = None
