"""Rules of the person that name paths of the project absolutely, or by their home."""

import pytest

from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.stories.permissions import outcomes
from tests.stories.world import World


@pytest.mark.parametrize("spelled", ["absolute", "home"])
async def test_what_is_denied_by_an_absolute_path_is_denied_in_the_project(
    world: World, spelled: str
) -> None:
    """For every file tool; a search leaves it out, a link to it does not help, and the rest is allowed."""
    top = world.home.resolve() / "work"
    start = str(top) if spelled == "absolute" else "~/work"
    rules = {"*": "allow", f"{start}/private/*": "deny"}
    world.settings(permission={"read": rules, "edit": rules})
    (top / "private").mkdir(parents=True)
    (top / "private" / "k").write_text("SECRET\n")
    (top / "link").symlink_to("private/k")
    (top / "open").write_text("SECRET\n")
    calls = [
        Call("read", {"filePath": "private/k"}, id="1"),
        Call("read", {"filePath": str(top / "link")}, id="2"),
        Call("write", {"filePath": "private/new", "content": "x"}, id="3"),
        Call("grep", {"pattern": "SECRET"}, id="4"),
        Call("write", {"filePath": "new", "content": "x"}, id="5"),
    ]
    async with world.open(*(Step(call) for call in calls), Step(Say("done"))) as (hf, _):
        session = (await hf.sessions.create(directory=top, title="x")).id
        await hf.sessions.process(session, "go")
        found = outcomes((await hf.sessions.messages(session)).messages)
    assert [state for state, _ in found] == ["error", "error", "error", "completed", "completed"]
    assert (found[3][1].count("Line 1: SECRET"), f"{top}/private/k:" in found[3][1]) == (1, False)
