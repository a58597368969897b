"""The long story, played once for all who look at it."""

import asyncio

import pytest

from tests.golden.stage import Stage
from tests.golden.story import play


@pytest.fixture(scope="package")
def told(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The stage after the story, with every request that was made."""
    place = tmp_path_factory.mktemp("story")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place / "home"))
        return asyncio.run(play(place))
