"""Lists of sessions: every filter, pages, and what busy means in a list."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.store.batch import Batch, project_scope
from holdfast.store.query import SessionQuery
from holdfast.testing.store_contract.build import S1, S2, S3, record, ses, session, user
from holdfast.testing.store_contract.world import Contract, World, granted


async def found(world: World, **filters: object) -> list[str]:
    """The ids that a query finds, in its order."""
    page = await world.store.sessions(SessionQuery(**filters))  # type: ignore[arg-type]
    return [each.id for each in page.sessions]


class Listing(Contract):
    """Sessions, the last updated first."""

    async def test_a_wrong_cursor_or_limit_is_invalid(self, world: World) -> None:
        """Neither is guessed at."""
        for query in (SessionQuery(cursor="x"), SessionQuery(limit=0), SessionQuery(limit=10_001)):
            with pytest.raises(InvalidInput):
                await world.store.sessions(query)

    async def test_the_last_updated_comes_first(self, world: World) -> None:
        """Order is the session's own update time, not that of its messages."""
        await world.put(session(S1, updated=30), session(S2, updated=10), session(S3, updated=20))
        await world.put(user(1, session=S2))
        assert await found(world) == [S1, S3, S2]

        await world.put(session(S2, updated=40))
        assert await found(world) == [S2, S1, S3]

    async def test_a_listed_session_is_the_session(self, world: World) -> None:
        """A list shows the same record as asking for one."""
        await world.put(session(), user(1))

        page = await world.store.sessions(SessionQuery())
        assert page.sessions == (await world.store.session(S1),)
        assert page.next is None

    async def test_by_project_directory_and_slug(self, world: World) -> None:
        """Each is an exact match, and several hold together."""
        await world.put(
            session(S1, project="p1", directory="/a", slug="brave-wolf", updated=3),
            session(S2, project="p1", directory="/a/b", slug="calm-wolf", updated=2),
            session(S3, project="p2", directory="/a", slug="brave-wolf", updated=1),
        )

        assert await found(world, project="p1") == [S1, S2]
        assert await found(world, directory="/a") == [S1, S3]
        assert await found(world, slug="brave-wolf") == [S1, S3]
        assert await found(world, project="p1", slug="brave-wolf") == [S1]
        assert await found(world, project="p") == []

    async def test_a_moved_session_is_found_where_it_is_now(self, world: World) -> None:
        """Filters follow the latest content."""
        await world.put(session(project="p1", directory="/a", title="old words"))
        await world.put(session(project="p2", directory="/b", title="new words"))

        assert await found(world, project="p1") == []
        assert await found(world, directory="/a") == []
        assert await found(world, title="old") == []
        assert await found(world, project="p2", directory="/b", title="new") == [S1]

    async def test_by_path_equal_or_below(self, world: World) -> None:
        """`src` finds `src` and `src/app`, and neither `src2` nor a pattern's idea of it."""
        paths = ["src", "src/app", "src2", "sr", "src%", "src/app/x", "lib/src", "s_c", "src-x/y"]
        await world.put(
            *(session(ses(n), path=path, updated=100 - n) for n, path in enumerate(paths)), session(ses(50))
        )

        assert await found(world, path="src") == [ses(0), ses(1), ses(5)]
        assert await found(world, path="src/app") == [ses(1), ses(5)]
        assert await found(world, path="s_c") == [ses(7)]
        assert await found(world, path="src%") == [ses(4)]

    async def test_by_parent_and_roots(self, world: World) -> None:
        """Direct children of one session, or only sessions without a parent."""
        await world.put(
            session(S1, updated=4),
            session(S2, parent=S1, updated=3),
            session(S3, parent=S2, updated=2),
            session(ses(4), updated=1),
        )

        assert await found(world, parent=S1) == [S2]
        assert await found(world, parent=S3) == []
        assert await found(world, roots=True) == [S1, ses(4)]

    async def test_archived_is_a_question_with_three_answers(self, world: World) -> None:
        """Hidden by default, shown alone, or shown together; any number archives, 0 and negative too."""
        await world.put(
            session(S1, updated=4),
            session(S2, updated=3, archived=0),
            session(S3, updated=2, archived=-1.5),
            session(ses(4), updated=1, archived=5),
        )

        assert await found(world) == [S1]
        assert await found(world, archived=True) == [S2, S3, ses(4)]
        assert await found(world, archived=None) == [S1, S2, S3, ses(4)]
        await world.put(session(S2, updated=3))
        assert await found(world) == [S1, S2]

    async def test_agent_runs_are_a_question_with_three_answers(self, world: World) -> None:
        """Sessions of single runs are hidden by default, shown alone, or shown together; a child is one too.
        A run that loses its mark is an ordinary session.
        """
        run = {"agent": "explore", "prompt": "Look."}
        await world.put(
            session(S1, updated=4),
            session(S2, updated=3, agentRun=run),
            session(S3, updated=2, parent=S1, agentRun={"agent": "title"}),
            session(ses(4), updated=1, agentRun=run, archived=5),
        )

        assert await found(world) == [S1]
        assert await found(world, agent_runs=True) == [S2, S3]
        assert await found(world, agent_runs=True, archived=None) == [S2, S3, ses(4)]
        assert await found(world, agent_runs=None) == [S1, S2, S3]
        assert await found(world, agent_runs=None, parent=S1) == [S3]
        await world.put(session(S2, updated=3))
        await world.reopen()
        assert await found(world) == [S1, S2]

    async def test_hidden_agent_runs_leave_full_pages(self, world: World) -> None:
        """A page counts only what it shows, however many runs lie between."""
        runs = [session(ses(n), updated=n, agentRun={"agent": "a"}) for n in range(1, 30) if n % 5]
        await world.put(*runs, *(session(ses(n), updated=n) for n in range(5, 30, 5)))
        first = await world.store.sessions(SessionQuery(limit=2))
        second = await world.store.sessions(SessionQuery(limit=3, cursor=first.next))

        assert [each.id for each in first.sessions] == [ses(25), ses(20)]
        assert [each.id for each in second.sessions] == [ses(15), ses(10), ses(5)]
        assert second.next is None

    async def test_by_range_of_update(self, world: World) -> None:
        """Both ends belong to the range."""
        await world.put(*(session(ses(n), updated=n * 10) for n in range(1, 6)))

        assert await found(world, updated_from=30) == [ses(5), ses(4), ses(3)]
        assert await found(world, updated_to=20) == [ses(2), ses(1)]
        assert await found(world, updated_from=20, updated_to=40) == [ses(4), ses(3), ses(2)]

    async def test_by_text_of_the_title(self, world: World) -> None:
        """Anywhere in the title, whatever its case, in every script."""
        titles = ["Fix the Parser", "parser rewrite", "École d'été", "STRASSE", "unrelated"]
        await world.put(*(session(ses(n), title=title, updated=100 - n) for n, title in enumerate(titles)))

        assert await found(world, title="PARSER") == [ses(0), ses(1)]
        assert await found(world, title="the p") == [ses(0)]
        assert await found(world, title="éCOLE") == [ses(2)]
        assert await found(world, title="ÉTÉ") == [ses(2)]
        assert await found(world, title="strasse") == [ses(3)]

    @pytest.mark.parametrize("text", ["%", "_", "\\", "'", '"', "100%", "a_b", "[a]", "*", "?", "\\%"])
    async def test_signs_of_patterns_are_only_text(self, world: World, text: str) -> None:
        """A title is searched for exactly what was typed."""
        await world.put(session(S1, title=f"x {text} y"), session(S2, title="100 axb plain a"))

        assert await found(world, title=text) == [S1]

    async def test_by_prefix_of_the_id(self, world: World) -> None:
        """A unique prefix names a session; signs of patterns are only text, and case matters."""
        await world.put(
            session("ses_abc1", updated=3), session("ses_abd2", updated=2), session("ses_ABC3", updated=1)
        )

        assert await found(world, id_prefix="ses_abc") == ["ses_abc1"]
        assert await found(world, id_prefix="ses_ab") == ["ses_abc1", "ses_abd2"]
        assert await found(world, id_prefix="ses_a%") == []
        assert await found(world, id_prefix="ses_ab_") == []

    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 7])
    async def test_pages_meet_every_session_once(self, world: World, limit: int) -> None:
        """By `next` to the end, also over sessions with the same update time."""
        times = [50, 40, 40, 40, 30, 30, 10]
        await world.put(*(session(ses(n), updated=time) for n, time in enumerate(times)))
        pages, cursor = [], None
        while True:
            page = await world.store.sessions(SessionQuery(limit=limit, cursor=cursor))
            pages.append([each.id for each in page.sessions])
            cursor = page.next
            if cursor is None:
                break

        seen = [id for each in pages for id in each]
        assert all(len(each) == limit for each in pages[:-1])
        assert len(pages[-1]) > 0
        assert sorted(seen) == [ses(n) for n in range(7)]
        assert [times[[ses(n) for n in range(7)].index(id)] for id in seen] == times

    async def test_a_filtered_list_pages_too(self, world: World) -> None:
        """The cursor goes with the same filters."""
        await world.put(*(session(ses(n), updated=n, project=f"p{n % 2}") for n in range(8)))
        first = await world.store.sessions(SessionQuery(project="p1", limit=3))
        second = await world.store.sessions(SessionQuery(project="p1", limit=3, cursor=first.next))

        assert [each.id for each in (*first.sessions, *second.sessions)] == [ses(n) for n in (7, 5, 3, 1)]
        assert second.next is None

    async def test_erased_sessions_and_scopes_are_not_listed(self, world: World) -> None:
        """Neither tombstones nor a project's pseudo-session is a session."""
        await world.put(session(), session(S2), record(project_scope("global"), "project", "global", {}))
        await world.store.erase(S1)

        assert await found(world, archived=None) == [S2]
        assert await found(world, project="global") == [S2]
        assert await found(world, id_prefix="project") == []

    async def test_a_list_shows_who_is_busy(self, world: World) -> None:
        """The living owner is in the list, and leaves it with the claim."""
        await world.put(session(S1, updated=2), session(S2, updated=1))
        owner = await world.owner("o1")
        granted(await world.store.claim(S2, "o1"))
        page = await world.store.sessions(SessionQuery())
        assert [(each.id, each.owner, each.busy) for each in page.sessions] == [
            (S1, None, False),
            (S2, "o1", True),
        ]

        world.host.kill(owner)
        page = await world.store.sessions(SessionQuery())
        assert [each.busy for each in page.sessions] == [False, False]

    async def test_another_process_lists_what_was_committed(self, world: World) -> None:
        """A second handle sees a commit as soon as it has returned."""
        other = await world.another()
        await world.put(session())
        assert [each.id for each in (await other.sessions(SessionQuery())).sessions] == [S1]

        await other.commit(Batch((session(S2, updated=2000),)))
        assert await found(world) == [S2, S1]
