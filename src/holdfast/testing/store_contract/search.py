"""Search over titles, message text, tool inputs and paths."""

import pytest

from holdfast.store.batch import Remove
from holdfast.store.query import SearchQuery
from holdfast.store.record import Hit
from holdfast.testing.store_contract.build import S1, S2, msg, part, prt, session, text, tool, user
from holdfast.testing.store_contract.world import Contract, World


async def parts(world: World, words: str, **scope: object) -> list[str]:
    """The part ids (or session ids, for titles) that are found, sorted."""
    hits = await world.store.search(SearchQuery(words, **scope))  # type: ignore[arg-type]
    return sorted(hit.part or hit.session for hit in hits)


class Searching(Contract):
    """All words, in any order, and nothing that the user types is an operator."""

    async def test_nothing_is_found_in_an_empty_store(self, world: World) -> None:
        """No words, no hits, no error."""
        assert await parts(world, "anything") == []

    async def test_a_text_part_is_found_by_all_of_its_words(self, world: World) -> None:
        """Every word must be there, in any order and case."""
        await world.put(
            session(), user(1), text(2, 1, "The quick brown Fox"), text(3, 1, "the quick blue hare")
        )

        assert await parts(world, "quick") == [prt(2), prt(3)]
        assert await parts(world, "FOX quick") == [prt(2)]
        assert await parts(world, "fox hare") == []
        assert await parts(world, "fo") == []

    async def test_a_hit_says_where_it_is(self, world: World) -> None:
        """Session, its title, message, part, and a piece of the text around the word."""
        words = "lorem " * 200 + "needle in the haystack" + " ipsum" * 200
        await world.put(session(title="Stacks"), user(1), text(2, 1, words))

        (hit,) = await world.store.search(SearchQuery("needle"))

        assert hit == Hit(S1, "Stacks", msg(1), prt(2), hit.snippet)
        assert "needle in the haystack" in hit.snippet
        assert len(hit.snippet) <= 400

    async def test_a_title_is_found(self, world: World) -> None:
        """A hit on a title has neither message nor part."""
        await world.put(session(title="Fix the wombat parser"))

        (hit,) = await world.store.search(SearchQuery("wombat"))
        assert hit == Hit(S1, "Fix the wombat parser", None, None, hit.snippet)
        assert "wombat" in hit.snippet

    async def test_tool_inputs_and_paths_are_found_and_outputs_are_not(self, world: World) -> None:
        """What was asked for is searched; what came back would drown it."""
        await world.put(
            session(),
            user(1),
            tool(
                2,
                1,
                input={"command": "grep wombat", "deep": {"list": ["kiwi"]}},
                output="ostrich",
                title="emu",
            ),
            part(3, 1, {"type": "file", "mime": "text/plain", "filename": "heron.txt", "url": "data:,crane"}),
            part(4, 1, {"type": "patch", "hash": "h", "files": ["/work/app/src/stork_case.py"]}),
            part(5, 1, {"type": "reasoning", "text": "flamingo", "time": {"start": 1}}),
        )

        assert await parts(world, "wombat") == [prt(2)]
        assert await parts(world, "kiwi") == [prt(2)]
        assert await parts(world, "emu") == [prt(2)]
        assert await parts(world, "ostrich") == []
        assert await parts(world, "heron") == [prt(3)]
        assert await parts(world, "src") == [prt(4)]
        assert await parts(world, "flamingo") == []

    async def test_scope_by_project_and_session(self, world: World) -> None:
        """Hits of other projects and sessions are left out."""
        await world.put(session(S1, project="p1", title="a"), session(S2, project="p2", title="b"))
        await world.put(user(1), text(2, 1, "wombat"), user(1, session=S2), text(3, 1, "wombat", session=S2))

        assert await parts(world, "wombat") == [prt(2), prt(3)]
        assert await parts(world, "wombat", project="p1") == [prt(2)]
        assert await parts(world, "wombat", session=S2) == [prt(3)]
        assert await parts(world, "wombat", project="p1", session=S2) == []
        assert await parts(world, "wombat", project="p3") == []

    async def test_a_moved_session_is_found_in_its_new_project(self, world: World) -> None:
        """The scope is the session's present project, for its old parts too."""
        await world.put(session(project="p1"), user(1), text(2, 1, "wombat"))
        await world.put(session(project="p2"))

        assert await parts(world, "wombat", project="p1") == []
        assert await parts(world, "wombat", project="p2") == [prt(2)]

    async def test_changed_text_is_found_by_its_new_words_only(self, world: World) -> None:
        """A part or title that was changed is not found by its former text."""
        await world.put(session(title="old"), user(1), text(2, 1, "wombat"))
        assert await parts(world, "wombat") == [prt(2)]
        await world.put(session(title="new"), text(2, 1, "kiwi"))

        assert await parts(world, "wombat") == []
        assert await parts(world, "kiwi") == [prt(2)]
        assert await parts(world, "old") == []
        assert await parts(world, "new") == [S1]

    async def test_removed_records_are_not_found(self, world: World) -> None:
        """Neither a removed part, nor the parts of a removed message; a re-created one is."""
        await world.put(session(), user(1), text(2, 1, "wombat"), user(3), text(4, 3, "wombat"))
        assert await parts(world, "wombat") == [prt(2), prt(4)]
        await world.put(Remove(S1, "part", prt(2)), Remove(S1, "message", msg(3)))
        assert await parts(world, "wombat") == []

        await world.put(text(2, 1, "wombat"))
        assert await parts(world, "wombat") == [prt(2)]

    @pytest.mark.parametrize(
        "words",
        [
            'alpha "beta',
            "alpha AND beta",
            "alpha OR beta",
            "alpha NOT gamma",
            "NEAR(alpha beta)",
            "alpha NEAR beta",
            "-alpha beta",
            "alpha & beta",
            "alpha | !beta",
            "alpha:* beta",
            "(alpha beta",
            "alpha) beta",
            "title:alpha beta",
            "^alpha beta",
            "alpha\x00beta",
            "'alpha'' beta",
            "{alpha} + beta",
            "alpha <-> beta",
            "\\alpha beta\\",
        ],
    )
    async def test_what_people_type_is_only_words(self, world: World, words: str) -> None:
        """Signs separate words; AND, OR, NOT and NEAR are words like others."""
        await world.put(session(), user(1), text(2, 1, "alpha beta"), text(3, 1, "gamma alpha"))
        await world.put(text(4, 1, "alpha and or not near title beta gamma"), text(5, 1, "unrelated"))

        plain = {"AND", "OR", "NOT", "NEAR", "title", "gamma"}
        words_only = "".join(sign if sign.isalnum() else " " for sign in words).split()
        expected = [prt(4)] if plain & set(words_only) else [prt(2), prt(4)]
        assert await parts(world, words) == expected

    async def test_a_star_is_no_wildcard(self, world: World) -> None:
        """`alph*` looks for the word `alph`."""
        await world.put(session(), user(1), text(2, 1, "alphabet alpha"), text(3, 1, "alph"))

        assert await parts(world, "alph*") == [prt(3)]

    @pytest.mark.parametrize(
        "words", ["", " ", "\x00", '"', "()", "*", "-", "' OR 1=1 --", "%", ":*", "&|!", "«»"]
    )
    async def test_text_without_known_words_finds_nothing(self, world: World, words: str) -> None:
        """No error, no everything."""
        await world.put(session(title="plain"), user(1), text(2, 1, "alpha"))

        assert await parts(world, words) == []

    async def test_a_very_long_question_is_answered(self, world: World) -> None:
        """Ten thousand words do not break the engine."""
        await world.put(session(), user(1), text(2, 1, "alpha"))

        assert await parts(world, "alpha " * 10_000) == [prt(2)]
        assert await parts(world, "x" * 100_000) == []

    async def test_the_limit_and_the_newest(self, world: World) -> None:
        """At most `limit` hits; in order of age when asked for."""
        await world.put(session(), user(1), *(text(n, 1, "wombat") for n in range(2, 12)))

        hits = await world.store.search(SearchQuery("wombat", limit=3, order="newest"))
        assert [hit.part for hit in hits] == [prt(11), prt(10), prt(9)]
        assert len(await world.store.search(SearchQuery("wombat", limit=4))) == 4

    async def test_every_script_is_searched(self, world: World) -> None:
        """Words with accents and letters of other scripts are found in either case."""
        await world.put(session(), user(1), text(2, 1, "Été à Zürich, Привет"))

        for word in ("zürich", "привет", "ÉTÉ"):
            assert await parts(world, word) == [prt(2)]

    async def test_another_process_finds_it_too(self, world: World) -> None:
        """What one process has committed the other finds at once."""
        other = await world.another()
        await world.put(session(), user(1), text(2, 1, "wombat"))

        assert [hit.part for hit in await other.search(SearchQuery("wombat"))] == [prt(2)]
