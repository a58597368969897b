"""Whatever the user, agents and crashes do to files, in any order: undo loses no line of anybody else's."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.undo_scene import FILES, SESSIONS, Scene
from tests.sessions.undo_world import configure

HOWS = ["insert", "insert", "replace", "replace", "append", "rewrite", "delete"]
Action = tuple[Any, ...]
name, how, place = st.sampled_from(FILES), st.sampled_from(HOWS), st.integers(0, 11)
session = st.sampled_from(SESSIONS)
agent = st.tuples(st.just("agent"), session, name, how, place, st.booleans())
revert = st.tuples(st.just("revert"), session, st.integers(0, 2))
action: st.SearchStrategy[Action] = st.one_of(
    agent,
    agent,
    agent,
    revert,
    revert,
    st.tuples(st.just("user"), name, how, place),
    st.tuples(st.just("git"), st.sampled_from(["commit", "checkout", "reset"])),
    st.tuples(st.just("unrevert"), session, st.booleans()),
    st.tuples(st.just("prompt"), session),
    st.tuples(st.just("restart")),
    st.tuples(st.just("kill"), st.integers(1, 8)),
)


async def act(scene: Scene, what: str, *given: Any) -> None:
    """One thing that happens."""
    match what:
        case "agent":
            *rest, observed = given
            await scene.agent(*rest, observed=observed)
        case "user":
            scene.user(*given)
        case "git":
            scene.git(*given)
        case "prompt":
            await scene.prompt(*given)
        case "revert":
            await scene.revert(*given)
        case "unrevert":
            await scene.unrevert(given[0], committed=given[1])
        case "restart":
            await scene.close()
            await scene.open()
        case "kill":
            (scene.kill_after,) = given
        case other:
            raise AssertionError(other)


async def story(actions: list[Action], folder: Path) -> None:
    (folder / "outside").write_text("outside\n")
    scene = Scene(folder)
    patch = pytest.MonkeyPatch()
    try:
        scene.count_writes(patch)
        await scene.begin()
        for each in actions:
            note(str(each))
            await act(scene, *each)
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


@pytest.mark.ci
@pytest.mark.needs("git")
@settings(max_examples=examples(12), suppress_health_check=list(HealthCheck))
@given(st.lists(action, min_size=8, max_size=25))
def test_no_line_is_lost(actions: list[Action]) -> None:
    """Lines of the user and of other sessions stay, files come back exactly where nobody else changed them,
    git's HEAD, index and configuration are never touched, nothing outside changes, and what is kept is sound.
    """
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = Path(os.path.realpath(folder))
        patch.setenv("HOME", str(place / "home"))
        configure(place / "home")
        anyio.run(story, actions, place)
