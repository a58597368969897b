"""Whatever a person, a model and a failing machine do to a session, in any order: it stays a session."""

import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.engine_world import Scene
from tests.stories.world import World

ANSWERS = [
    "text",
    "hangs",
    "hangs before a word",
    "calls",
    "calls and hangs",
    "calls what is not there",
    "refuses",
    "breaks off",
    "breaks off in a call",
    "fails in the middle",
]
PROMPTS = ["steer", "steer", "queue", "no reply"]
OTHERS = [
    "same again",
    "other again",
    "interrupt",
    "interrupt and prompt",
    "crash",
    "resume",
    "rest",
    "let go",
    "hold",
    "pause",
]
Action = tuple[str, str, list[str]]
action: st.SearchStrategy[Action] = st.one_of(
    st.tuples(st.just("prompt"), st.sampled_from(PROMPTS), st.lists(st.sampled_from(ANSWERS), max_size=3)),
    st.tuples(st.sampled_from(OTHERS), st.just(""), st.just([])),
    # Time passes more often than anything else happens.
    st.tuples(st.just("pause"), st.just(""), st.just([])),
)


async def act(scene: Scene, what: str, kind: str, answers: list[str]) -> None:
    """One thing that happens."""
    match what:
        case "prompt":
            scene.oracle.prepared.extend(answers)
            await scene.prompt(kind)
        case "same again" | "other again":
            await scene.prompt_again(changed=what == "other again")
        case "interrupt":
            await scene.interrupt()
        case "interrupt and prompt":
            async with anyio.create_task_group() as group:
                group.start_soon(scene.interrupt)
                group.start_soon(scene.prompt, "steer")
            scene.stopped = True  # Either may have come first.
        case "crash":
            await scene.crash()
        case "resume":
            await scene.resume()
        case "rest":
            await scene.rest()
        case "let go":
            scene.oracle.open_gates()
        case "hold":
            scene.hold()
        case "pause":
            await anyio.sleep(0.01)
        case other:
            raise AssertionError(other)


async def story(actions: list[Action], folder: Path) -> None:
    """Play it, then let one more process go on, and say one last thing."""
    world = World(folder, Path.home())
    world.settings(permission={"*": "allow"})
    scene = Scene(world)
    await scene.begin()
    try:
        for what, kind, answers in actions:
            await act(scene, what, kind, answers)
        await scene.crash()
        await scene.resume()
        await scene.rest()
        scene.oracle.prepared.clear()
        await scene.prompt("steer")
        await scene.rest()
        await scene.check_all_heard()
    finally:
        await scene.end()


@pytest.mark.ci
@settings(max_examples=examples(25, times=20), suppress_health_check=[HealthCheck.too_slow], print_blob=True)
@given(st.lists(action, min_size=1, max_size=14))
def test_a_session_survives_any_order_of_events(actions: list[Action]) -> None:
    """Prompts, answers, failures, interrupts, crashes and resumes.

    Every acknowledged prompt is there and was promoted once, in order among those of its kind; every call is
    settled, and never changes after; nothing is open while the session rests, and it is busy only while a
    process works on it; each request to the model extends the one before it.
    """
    note(f"actions = {actions}")
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(story, actions, Path(folder))
