"""What a session may do: its agent's rules, its own, and those of the sessions above it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.config.agents import Agents
from holdfast.permission.policy import Policy
from holdfast.runtime.epoch import policy
from holdfast.schema.agent import Agent
from holdfast.schema.ids import SessionID
from holdfast.schema.message import MessageWithParts
from holdfast.schema.permission import Action, Rule
from holdfast.schema.session import CEILINGS, FORK, Session
from holdfast.store.query import MessageQuery
from tests.provider.history import user
from tests.runtime.sample_history import answer, summary
from tests.runtime.sample_session import SESSION


def rule(permission: str, action: Action = "deny") -> Rule:
    return Rule(permission=permission, pattern="*", action=action)


NOTHING_ALLOWED = rule("*")
BUILD = Agent(name="build", mode="primary", permission=[rule("build", "allow")], options={})
PLAN = Agent(name="plan", mode="primary", permission=[rule("plan", "allow")], options={})
TOP = "/project"
AROUND: Any = SimpleNamespace(
    agents=Agents((BUILD, PLAN), "build", ([rule("folder")],), {"plan": [rule("folder of plan")]}),
    places=SimpleNamespace(directory=Path(TOP), worktree=Path("/")),
)
OWN = ([rule("folder")],)
PARENT = replace(SESSION, id=SessionID("ses_0"), permission=[rule("parent")])
CHILD = replace(SESSION, parent_id=PARENT.id, permission=[rule("child")])


class FewSessions:
    """A store with these sessions, and the messages of the parent, three a page, the newest page first."""

    def __init__(self, *sessions: Session, history: list[MessageWithParts] | None = None) -> None:
        self._sessions = {session.id: session for session in sessions}
        self._history = history or []

    async def session(self, id: str) -> Any:
        found = self._sessions.get(SessionID(id))
        return None if found is None else SimpleNamespace(value=lambda: found)

    async def messages(self, query: MessageQuery) -> Any:
        end = len(self._history) if query.before is None else int(query.before)
        begin = max(0, end - 3)
        page = [
            SimpleNamespace(info=SimpleNamespace(value=lambda each=each: each.info))
            for each in self._history[begin:end]
        ]
        return SimpleNamespace(messages=page, older=str(begin) if begin else None)


async def policy_of(session: Session, store: FewSessions, agent: Agent = BUILD) -> Policy:
    async def workspace(_: Session) -> Any:
        return AROUND

    engine: Any = SimpleNamespace(store=store, workspace=workspace)
    return await policy.policy_of(engine, session, AROUND, agent)


async def test_the_sessions_own_rules_come_after_the_agents() -> None:
    """The last match wins, so that a session may change what its agent says; folders may only tighten."""
    session = replace(SESSION, permission=[rule("own")])

    assert await policy_of(session, FewSessions()) == Policy(
        (rule("build", "allow"), rule("own")), OWN, top=TOP
    )
    assert await policy_of(SESSION, FewSessions(), PLAN) == Policy(
        (rule("plan", "allow"),), (*OWN, [rule("folder of plan")]), top=TOP
    )


@pytest.mark.parametrize(
    ("history", "agent"),
    [
        pytest.param([], BUILD, id="no turn yet: the default agent"),
        pytest.param([user("x"), answer("hi", agent="plan")], PLAN, id="the agent of the latest turn"),
        pytest.param(
            [answer("hi", agent="build"), user("x"), answer("hi", agent="plan")],
            PLAN,
            id="of several, the last",
        ),
        pytest.param(
            [answer("hi", agent="plan"), *(user("x") for _ in range(7))], PLAN, id="some pages back"
        ),
        pytest.param(
            [answer("hi", agent="plan"), summary(user("x"), agent="compaction")],
            PLAN,
            id="a summary is no turn",
        ),
        pytest.param([answer("hi", agent="gone")], BUILD, id="an agent that is gone: the default one"),
    ],
)
async def test_a_child_may_do_no_more_than_its_parent(history: list[MessageWithParts], agent: Agent) -> None:
    """Above it stands the policy of the parent, with the agent of the parent's latest turn."""
    found = await policy_of(CHILD, FewSessions(PARENT, history=history))
    above = Policy((*agent.permission, rule("parent")), AROUND.agents.restrictions(agent.name), top=TOP)

    assert found == Policy((rule("build", "allow"), rule("child")), OWN, above, TOP)


async def test_a_session_whose_parent_is_gone_stands_alone() -> None:
    """There is nothing left that could limit it."""
    assert (await policy_of(CHILD, FewSessions())).above is None


async def test_a_tree_that_is_too_deep_allows_nothing() -> None:
    """A session that is its own ancestor ends there too."""
    own_parent = replace(PARENT, parent_id=PARENT.id)
    found: Policy | None = await policy_of(own_parent, FewSessions(own_parent))
    levels = 0
    while found is not None and found.above is not None:
        found, levels = found.above, levels + 1

    assert (levels, found) == (policy.DEPTH_MAX + 1, Policy((NOTHING_ALLOWED,)))


async def test_a_tree_of_the_greatest_depth_is_looked_at_whole() -> None:
    """Its root, at the last level, has nothing above it."""
    names = [SessionID(f"ses_{level}") for level in range(policy.DEPTH_MAX + 1)]
    tree = [
        replace(SESSION, id=id, parent_id=above) for id, above in zip(names, [None, *names], strict=False)
    ]
    found: Policy | None = await policy_of(tree[-1], FewSessions(*tree))
    levels = []
    while found is not None:
        levels.append(found.rules)
        found = found.above

    assert levels == [(rule("build", "allow"),)] * (policy.DEPTH_MAX + 1)


@pytest.mark.parametrize(
    ("metadata", "ceilings"),
    [
        (None, ()),
        ({}, ()),
        ({FORK: {"session": "ses_9"}}, ()),
        ({FORK: "ses_9"}, ()),
        (
            {FORK: {CEILINGS: [[{"permission": "bash", "pattern": "*", "action": "deny"}]]}},
            ([rule("bash")],),
        ),
        ({FORK: {CEILINGS: [[{"permission": "bash"}]]}}, ([NOTHING_ALLOWED],)),
        ({FORK: {CEILINGS: "all"}}, ([NOTHING_ALLOWED],)),
    ],
)
async def test_a_fork_keeps_what_limited_its_source(metadata: dict[str, Any] | None, ceilings: Any) -> None:
    """As restrictions; where they cannot be read, nothing is allowed."""
    found = await policy_of(replace(SESSION, metadata=metadata), FewSessions())

    assert found.restrictions == (*OWN, *ceilings)
