"""The time of a call, however its server behaves."""

import anyio
import pytest

from holdfast.tools.mcp.elicitation import Elicitation, ElicitationAnswer
from holdfast.tools.mcp.wire import call_under_way
from holdfast.tools.mcp.wire.call_under_way import CallUnderWay


async def agree(_: Elicitation) -> ElicitationAnswer:
    return ElicitationAnswer(action="accept")


async def test_progress_extends_a_call_up_to_the_bound_of_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that reports for ever is cut off; a form that the user answers gives all of it again."""
    monkeypatch.setattr(call_under_way, "CALL_S_MAX", 50.0)
    limit = anyio.CancelScope()
    begun_s = anyio.current_time()
    call = CallUnderWay("ses_1", agree, limit, 40.0)
    call.extend()
    assert begun_s + 40 <= limit.deadline < begun_s + 50
    long = CallUnderWay("ses_1", agree, limit, 400.0)
    long.extend()
    last_s = limit.deadline
    assert begun_s + 50 <= last_s < begun_s + 100

    long.extend()
    assert limit.deadline == last_s
    await long.ask(Elicitation(server="one", message="?"))
    assert last_s < limit.deadline < begun_s + 100
