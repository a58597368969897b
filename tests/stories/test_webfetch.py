"""A model that fetches pages, in a whole session."""

from typing import Any

import pytest

from holdfast.testing.mock_provider import MockProvider, Raw
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from tests.stories.world import World


@pytest.mark.parametrize(
    ("rules", "said", "requests"),
    [
        ({"*": "allow"}, "private_address", 0),
        ({"private_address": "allow"}, "**hello**", 1),
        ({"private_address": {"http://127.0.0.1:*": "allow"}}, "**hello**", 1),
        ({"private_address": "allow", "webfetch": "deny"}, "There is no tool called webfetch", 0),
    ],
)
async def test_this_machine_is_fetched_by_name_alone(
    world: World, rules: Any, said: str, requests: int
) -> None:
    """With nobody there, `"*": "allow"` does not open this machine; a rule that names it does."""
    async with MockProvider() as site:
        site.play(Raw((b"<b>hello</b>",), 200, {"content-type": "text/html"}))
        world.settings(permission=rules)
        url = site.url.replace("localhost", "127.0.0.1").removesuffix("/v1")
        async with world.open(
            Step(Call("webfetch", {"url": f"{url}/page"}, id="a")),
            Step(Say("ok"), expect=answered("a", said)),
        ) as (hf, _):
            session = await world.session(hf)
            await hf.sessions.process(session, "go")
        assert len(site.requests) == requests
