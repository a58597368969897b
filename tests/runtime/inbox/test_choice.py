"""Who answers a prompt: each rule of the order, and what is refused."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.config.agents import Agents
from holdfast.errors import InvalidInput, NotFound
from holdfast.provider.catalog.model import Model, Settings, WireKind
from holdfast.runtime.inbox.choice import Choice, Wish, choose
from holdfast.schema.agent import Agent
from holdfast.schema.ids import SessionID
from holdfast.schema.model import ModelRef, SessionModel
from holdfast.schema.session import AgentRun, Session
from tests.runtime.sample_session import SESSION

BUILD = Agent(name="build", mode="primary", permission=[], options={})
PLAN = Agent(
    name="plan",
    mode="primary",
    permission=[],
    options={},
    model=ModelRef(provider_id="acme", model_id="deep"),
    variant="high",
)
HELPER = Agent(name="helper", mode="subagent", permission=[], options={}, prompt="Help.")
CHILD = replace(SESSION, parent_id=SessionID("ses_0"))
OF_SESSION = replace(SESSION, model=SessionModel(id="own", provider_id="acme", variant="low"))


def ref(model: str, variant: str | None = None) -> ModelRef:
    return ModelRef(provider_id="acme", model_id=model, variant=variant)


class FewModels:
    """Four models with the variants low and high, one without any."""

    def __init__(self) -> None:
        self.known = {id: self._made(id) for id in ("default", "own", "last", "deep", "plain")}

    def _made(self, id: str) -> Model:
        variants = {} if id == "plain" else {"low": Settings(), "high": Settings()}
        return Model(
            provider_id="acme", id=id, api_id=id, name=id, wire=WireKind.OPENAI_CHAT, variants=variants
        )

    def model(self, provider_id: str, model_id: str) -> Model:
        if (provider_id, model_id) not in {("acme", id) for id in self.known}:
            raise NotFound(f"{provider_id} has no model {model_id!r}")
        return self.known[model_id]

    def default_model(self, configured: str | None) -> Model:
        return self.known["default" if configured is None else configured.removeprefix("acme/")]


def workspace(configured: str | None = None) -> Any:
    """Three agents and five models; `configured` is the model of the settings."""
    return SimpleNamespace(
        agents=Agents((BUILD, HELPER, PLAN), "build"),
        providers=FewModels(),
        loaded=SimpleNamespace(config=SimpleNamespace(model=configured)),
    )


@pytest.mark.parametrize(
    ("session", "wish", "agent"),
    [
        pytest.param(SESSION, Wish(), BUILD, id="without a wish the default agent"),
        pytest.param(replace(SESSION, agent="plan"), Wish(), PLAN, id="the agent of the session before it"),
        pytest.param(replace(SESSION, agent="plan"), Wish(agent="build"), BUILD, id="the wish before both"),
        pytest.param(CHILD, Wish(agent="helper"), HELPER, id="a subagent in a child session"),
        pytest.param(
            replace(SESSION, agent="helper"), Wish(), HELPER, id="a subagent that the session names"
        ),
        pytest.param(
            replace(SESSION, agent_run=AgentRun(agent="helper")),
            Wish(agent="helper"),
            HELPER,
            id="a subagent in a session that was made for it",
        ),
        pytest.param(
            replace(SESSION, agent_run=AgentRun(agent="helper", prompt="Only this.")),
            Wish(agent="helper"),
            replace(HELPER, prompt="Only this."),
            id="with the prompt that the run was given",
        ),
        pytest.param(
            replace(SESSION, agent_run=AgentRun(agent="helper", prompt="Only this.")),
            Wish(agent="build"),
            BUILD,
            id="which is for that agent alone",
        ),
    ],
)
def test_the_agent(session: Session, wish: Wish, agent: Agent) -> None:
    """The wish, then the session, then the settings."""
    assert choose(wish, session, workspace()).agent == agent


@pytest.mark.parametrize(
    ("session", "wish", "last", "configured", "model"),
    [
        pytest.param(SESSION, Wish(), None, None, ref("default"), id="without a wish the best one"),
        pytest.param(SESSION, Wish(), None, "acme/plain", ref("plain"), id="or the configured one"),
        pytest.param(
            SESSION, Wish(), ref("last", "low"), "acme/plain", ref("last", "low"), id="the last one"
        ),
        pytest.param(OF_SESSION, Wish(), ref("last"), None, ref("own", "low"), id="the session's before it"),
        pytest.param(
            OF_SESSION,
            Wish(agent="plan"),
            ref("last", "low"),
            None,
            ref("deep", "high"),
            id="the agent's before the session's, with the agent's variant",
        ),
        pytest.param(
            OF_SESSION,
            Wish(agent="plan", model=ref("last")),
            None,
            None,
            ref("last"),
            id="the wish before all, without the variant of another model",
        ),
        pytest.param(
            SESSION, Wish(agent="plan", model=ref("deep")), None, None, ref("deep", "high"), id="named twice"
        ),
        pytest.param(
            SESSION, Wish(model=ref("last", "low")), None, None, ref("last", "low"), id="a wish with variant"
        ),
        pytest.param(
            SESSION,
            Wish(model=ref("last", "low"), variant="high"),
            None,
            None,
            ref("last", "high"),
            id="a variant of its own before that of the model",
        ),
        pytest.param(
            OF_SESSION, Wish(variant="high"), None, None, ref("own", "high"), id="and the session's"
        ),
        pytest.param(OF_SESSION, Wish(variant="default"), None, None, ref("own"), id="default is none"),
        pytest.param(
            SESSION, Wish(agent="plan", variant="default"), None, None, ref("deep"), id="of an agent too"
        ),
    ],
)
def test_the_model(
    session: Session, wish: Wish, last: ModelRef | None, configured: str | None, model: ModelRef
) -> None:
    """The wish, then the agent, the session, the answer before, the settings; the variant comes with each."""
    assert choose(wish, session, workspace(configured), last=last).model == model


def test_an_agents_variant_that_its_model_does_not_have_is_left_out() -> None:
    """The settings may name the variant of another model; that is no reason to refuse a prompt."""
    around = workspace()
    around.agents = Agents((replace(PLAN, model=ref("plain")),), "plan")
    assert choose(Wish(), SESSION, around) == Choice(
        agent=replace(PLAN, model=ref("plain")), model=ref("plain")
    )


@pytest.mark.parametrize(
    ("session", "wish", "error", "words"),
    [
        (SESSION, Wish(agent="nobody"), NotFound, "there is no agent 'nobody'"),
        (replace(SESSION, agent="gone"), Wish(), NotFound, "there is no agent 'gone'"),
        (SESSION, Wish(model=ref("none")), NotFound, "acme has no model 'none'"),
        (SESSION, Wish(variant="huge"), NotFound, "acme/default has no variant 'huge'; it has: low, high"),
        (SESSION, Wish(model=ref("plain", "low")), NotFound, "no variant 'low'; it has: none"),
        (SESSION, Wish(agent="helper"), InvalidInput, "helper works only for other agents"),
        (
            replace(SESSION, agent_run=AgentRun(agent="build")),
            Wish(agent="helper"),
            InvalidInput,
            "helper works only for other agents",
        ),
    ],
)
def test_what_is_named_must_exist(session: Session, wish: Wish, error: type[Exception], words: str) -> None:
    """The message says what there is; a subagent is not for a prompt of the user."""
    with pytest.raises(error, match=words):
        choose(wish, session, workspace())
