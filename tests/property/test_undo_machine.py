"""Whatever the user, agents and crashes do to files, in any order: undo loses no line of anybody else's."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.undo_agents import MODELS, SETTINGS
from tests.property.undo_process import KilledScene
from tests.property.undo_scene import FILES, SESSIONS, Scene
from tests.sessions.undo_world import configure

HOWS = ["insert", "insert", "replace", "replace", "append", "rewrite", "delete"]
Action = tuple[Any, ...]
name, how, place = st.sampled_from(FILES), st.sampled_from(HOWS), st.integers(0, 11)
session = st.sampled_from(SESSIONS)
agent = st.tuples(st.just("agent"), session, name, how, place, st.booleans())
revert = st.tuples(st.just("revert"), session, st.integers(0, 2))
others: list[st.SearchStrategy[Action]] = [
    revert,
    revert,
    st.tuples(st.just("user"), name, how, place),
    st.tuples(st.just("git"), st.sampled_from(["commit", "checkout", "reset"])),
    st.tuples(st.just("unrevert"), session, st.booleans()),
    st.tuples(st.just("prompt"), session),
    st.tuples(st.just("restart")),
]
recorded = st.one_of(
    agent, agent, agent, *others, st.tuples(st.just("kill"), st.integers(1, 8), st.booleans())
)

does = st.sampled_from([*HOWS, "move", "mode"])
meanwhile = st.tuples(st.sampled_from(["user", "user", "two"]), name, how, place)
edit = st.tuples(
    st.sampled_from(["noted", "noted", "bash", "both"]),
    name,
    does,
    place,
    st.one_of(st.none(), st.none(), meanwhile),
)
turn = st.tuples(
    st.just("turn"), session, st.sampled_from(MODELS), st.lists(edit, min_size=1, max_size=3)
).map(lambda drawn: (*drawn[:3], [_alone(drawn[1], each) for each in drawn[3]]))
kill = st.tuples(st.just("kill"), st.integers(1, 10) | st.integers(1, 40), st.booleans())
unrevert = st.tuples(st.just("unrevert"), session, st.booleans())
doomed: st.SearchStrategy[Action] = st.one_of(turn, revert, unrevert, st.tuples(st.just("prompt"), session))
several = st.one_of(st.tuples(turn), st.tuples(turn), st.tuples(st.one_of(others)), st.tuples(kill, doomed))
played = st.lists(several, min_size=6, max_size=16).map(lambda drawn: [each for few in drawn for each in few])


INSERTS: Action = ("agent", "one", "a", "insert", 0, False)
CUT_OFF: list[Action] = [("kill", 2, False), INSERTS]
"""The process dies after an agent's file is written and before its record: nobody takes that line back."""
INSERT, DELETE = ("noted", "a", "insert", 0, None), ("noted", "a", "delete", 0, None)
OVERTAKEN: list[Action] = [
    ("turn", "one", "m", [INSERT]),
    ("turn", "one", "m", [INSERT, (*DELETE[:4], ("two", "a", "insert", 0))]),
    ("turn", "two", "m", [INSERT]),
]
"""A command of the one session deletes the file after the prompt of the other, and had begun before it."""
CUT_OFF_COMMAND: list[Action] = [("kill", 10, False), ("turn", "two", "m", [DELETE])]
"""The process dies after a command and before the tree that would show what it did."""


def _alone(session: str, edit: tuple[Any, ...]) -> tuple[Any, ...]:
    """No session does anything while it does something."""
    return (*edit[:4], None) if edit[4] is not None and edit[4][0] == session else edit


async def story(actions: list[Action], scene: Scene) -> None:
    (scene.place / "outside").write_text("outside\n")
    patch = pytest.MonkeyPatch()
    try:
        scene.count_writes(patch)
        await scene.begin()
        for each in actions:
            note(str(each))
            if each[0] == "kill":
                scene.kill = each[1:]
            else:
                await scene.act(*each)
        shadow = await scene.world.shadow()
        await scene.close()
        if (shadow.git_dir / "HEAD").exists():
            subprocess.run(
                ["git", f"--git-dir={shadow.git_dir}", "fsck", "--no-dangling"],
                check=True,
                capture_output=True,
            )
    finally:
        patch.undo()


def play(actions: list[Action], make: Callable[[Path], Scene], **more: Any) -> None:
    """Play a story in a new folder."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = Path(os.path.realpath(folder))
        patch.setenv("HOME", str(place / "home"))
        configure(place / "home", models=MODELS, **more)
        anyio.run(story, actions, make(place))


@pytest.mark.ci
@pytest.mark.needs("git")
@settings(max_examples=examples(12), suppress_health_check=list(HealthCheck))
@given(st.lists(recorded, min_size=8, max_size=25))
@example([*CUT_OFF, ("revert", "two", 0)])
@example([*CUT_OFF, ("kill", 1, False), ("revert", "two", 0)])
@example([*CUT_OFF, ("kill", 1, True), ("revert", "two", 0)])
def test_no_line_is_lost(actions: list[Action]) -> None:
    """Lines of the user and of other sessions stay, files come back exactly where nobody else changed them,
    git's HEAD, index and configuration are never touched, nothing outside changes, and what is kept is sound.
    """
    play(actions, lambda place: Scene(place, real=False))


@pytest.mark.ci
@pytest.mark.needs("git")
@settings(max_examples=examples(6), suppress_health_check=list(HealthCheck), deadline=None)
@given(played)
@example([*OVERTAKEN, ("revert", "two", 1)])
@example(
    [
        *OVERTAKEN,
        ("turn", "two", "m", [("noted", "b", "rewrite", 0, None)]),
        ("restart",),
        ("kill", 4, True),
        ("revert", "two", 1),
    ]
)
@example([*CUT_OFF_COMMAND, ("revert", "two", 0)])
def test_no_line_is_lost_by_real_tools(actions: list[Action]) -> None:
    """The same where a model calls the tools of the application, also while the user or another session
    edits, and the process is killed at any of its writes.
    """
    play(actions, lambda place: Scene(place, real=True), **SETTINGS)


@pytest.mark.long
@pytest.mark.needs("git")
@settings(max_examples=examples(2, times=20), suppress_health_check=list(HealthCheck), deadline=None)
@given(played)
@example([*OVERTAKEN, ("revert", "two", 1)])
def test_no_line_is_lost_when_processes_are_killed(actions: list[Action]) -> None:
    """The same where the system kills the process that does it, and another one goes on."""
    play(actions, KilledScene, **SETTINGS)
