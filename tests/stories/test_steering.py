"""An agent that may edit everything is asked about what steers the next run."""

from typing import Any

import pytest

from holdfast.schema.request import PermissionAnswer, PermissionRequest
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.stories.permissions import outcomes
from tests.stories.world import World


def writes(*names: str) -> tuple[Step, ...]:
    """An agent that writes files, and ends."""
    calls = [Call("write", {"filePath": name, "content": "x"}, id=f"c{at}") for at, name in enumerate(names)]
    return (*(Step(each) for each in calls), Step(Say("done")))


STEERING = ("AGENTS.md", ".holdfast/plugins/p.py", ".git/hooks/pre-commit", "sub/opencode.json", "link.md")


async def test_without_a_user_nothing_that_steers_is_written(world: World) -> None:
    """Whatever is allowed in general: by name, in a folder, through a link. Plans are written."""
    world.settings(permission={"*": "allow", "edit": "allow"})
    (world.project / "link.md").symlink_to("CLAUDE.md")
    names = (*STEERING, "src/a.py", ".holdfast/plans/next.md")
    async with world.open(*writes(*names)) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        found = outcomes((await hf.sessions.messages(session)).messages)

    assert [state for state, _ in found] == ["error"] * len(STEERING) + ["completed"] * 2
    assert all("needs the user's consent" in said for _, said in found[: len(STEERING)])
    written = sorted(
        str(path.relative_to(world.project)) for path in world.project.rglob("*") if path.is_file()
    )
    assert written == [".holdfast/plans/next.md", "src/a.py"]


@pytest.mark.parametrize(
    "rules", [{"AGENTS.md": "allow"}, {"*": "allow", "*/AGENTS.md": "ask", "AGENTS.md": "allow"}]
)
async def test_a_rule_that_names_the_path_suffices(world: World, rules: dict[str, str]) -> None:
    """Of the user's own settings."""
    world.settings(permission={"edit": rules})
    async with world.open(*writes("AGENTS.md")) as (hf, _):
        await hf.sessions.process(await world.session(hf), "go")
    assert (world.project / "AGENTS.md").read_text() == "x"


async def test_always_is_for_that_path_alone(world: World) -> None:
    """It is offered as such, holds for the next session, and for no other path that steers."""
    asked: list[Any] = []

    async def on_ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append((request.patterns, request.always))
        return PermissionAnswer(reply="always")

    for names in (("AGENTS.md",), ("AGENTS.md", "CLAUDE.md")):
        (world.project / "AGENTS.md").unlink(missing_ok=True)
        async with world.open(*writes(*names), on_ask=on_ask) as (hf, _):
            await hf.sessions.process(await world.session(hf), "go")
    assert asked == [(["AGENTS.md"], ["AGENTS.md"]), (["CLAUDE.md"], ["CLAUDE.md"])]
    assert (world.project / "CLAUDE.md").exists()
