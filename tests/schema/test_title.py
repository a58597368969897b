"""Titles and slugs that the host gives."""

import pytest

from holdfast.schema import slug, title


def test_a_default_title_names_the_time() -> None:
    """Two markers, then the time in UTC with milliseconds."""
    assert title.default(1_786_706_395_136) == "New session - 2026-08-14T11:19:55.136Z"
    assert title.default(1_786_706_395_136, child=True) == "Child session - 2026-08-14T11:19:55.136Z"
    assert title.default(0) == "New session - 1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize("now_ms", [0, 1, 999, 1_786_706_395_136, 1_700_000_000_001, 32_503_680_000_000])
@pytest.mark.parametrize("child", [True, False])
def test_a_default_title_is_known_again(now_ms: int, child: bool) -> None:
    """What we give is what we recognise."""
    assert title.is_default(title.default(now_ms, child=child))


@pytest.mark.parametrize(
    "given",
    [
        "",
        "New session",
        "New session - ",
        "new session - 2026-08-14T11:19:55.136Z",
        "New session - 2026-08-14T11:19:55Z",
        "New session - 2026-08-14T11:19:55.136Z\n",
        "New session - 2026-08-14T11:19:55.136Z (fork #1)",
        "My New session - 2026-08-14T11:19:55.136Z",
        "New session - ２026-08-14T11:19:55.136Z",
    ],
)
def test_another_title_is_not_a_default_one(given: str) -> None:
    """The whole text must match, ASCII digits and all."""
    assert not title.is_default(given)


@pytest.mark.parametrize(
    ("source", "fork"),
    [
        ("Fix it", "Fix it (fork #1)"),
        ("Fix it (fork #1)", "Fix it (fork #2)"),
        ("Fix it (fork #9)", "Fix it (fork #10)"),
        ("Fix it (fork #1) more", "Fix it (fork #1) more (fork #1)"),
        ("Two\nlines (fork #3)", "Two\nlines (fork #4)"),
        (" (fork #1)", " (fork #1) (fork #1)"),
        ("", " (fork #1)"),
        ("x (fork #" + "9" * 5_000 + ")", "x (fork #" + "9" * 5_000 + ") (fork #1)"),
    ],
)
def test_forks_are_numbered(source: str, fork: str) -> None:
    """The first gets a number, the fork of a fork the next; a hostile number is only text."""
    assert title.fork(source) == fork


def test_a_subagents_title_names_it() -> None:
    """The description, then the agent."""
    assert title.subagent("Find it", "explore") == "Find it (@explore subagent)"


def test_a_slug_is_an_adjective_and_a_noun() -> None:
    """29 adjectives, 31 nouns, chosen by the random bytes alone."""
    assert (len(set(slug.ADJECTIVES)), len(set(slug.NOUNS))) == (29, 31)
    assert slug.make(bytes) == "brave-cabin"
    assert slug.make(lambda count: (29 * 31 - 1).to_bytes(count, "big")) == "witty-wolf"


def test_slugs_of_the_system_are_of_the_lists() -> None:
    """Without random bytes of its own, it takes the system's."""
    adjective, noun = slug.make().split("-")

    assert adjective in slug.ADJECTIVES
    assert noun in slug.NOUNS
