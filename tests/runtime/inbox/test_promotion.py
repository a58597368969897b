"""Which prompts join at a boundary."""

import pytest

from holdfast.runtime.inbox.promotion import Waiting, next_to_promote
from holdfast.schema.ids import MessageID, SessionID
from holdfast.schema.prompt import AdmittedPrompt, Delivery
from holdfast.schema.times import Created


def waiting(name: str) -> Waiting:
    """A prompt by its name: `s1` steers, `q1` is queued."""
    delivery: Delivery = "steer" if name.startswith("s") else "queue"
    prompt = AdmittedPrompt(
        id=MessageID(name),
        session_id=SessionID("ses_1"),
        parts=[],
        delivery=delivery,
        time=Created(created=1),
    )
    return Waiting(prompt, position=1, seq=1)


@pytest.mark.parametrize(
    ("names", "while_working", "when_idle"),
    [
        pytest.param("", "", "", id="nothing waits"),
        pytest.param("s1", "s1", "s1", id="one that steers joins at any boundary"),
        pytest.param("s1 s2", "s1 s2", "s1 s2", id="all that steer join together, in their order"),
        pytest.param("q1", "", "q1", id="one that is queued waits until the session would go idle"),
        pytest.param("q1 q2", "", "q1", id="queued ones join one by one, the first admitted first"),
        pytest.param("q1 s1", "s1", "s1", id="a queued one waits for those that steer, even admitted later"),
        pytest.param(
            "s1 q1 s2 q2", "s1 s2", "s1 s2", id="no queued one joins together with those that steer"
        ),
    ],
)
def test_next_to_promote(names: str, while_working: str, when_idle: str) -> None:
    """Steering prompts join at once and together; a queued one alone, when there is nothing else to do."""
    prompts = [waiting(name) for name in names.split()]
    chosen = {idle: next_to_promote(prompts, idle=idle) for idle in (False, True)}

    assert {idle: " ".join(each.prompt.id for each in found) for idle, found in chosen.items()} == {
        False: while_working,
        True: when_idle,
    }
