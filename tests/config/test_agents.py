"""Agents and commands: the built-in ones, and what settings make of them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.config import agents, builtin_agents, builtin_commands
from holdfast.config.agents import Agents
from holdfast.config.commands import commands, hints
from holdfast.errors import InvalidInput, NotFound
from holdfast.permission import evaluate
from holdfast.schema.model import ModelRef
from holdfast.schema.permission import Rule
from holdfast.schema.wire import decode, encode
from tests.config.world import World, write

ROOT = Path(__file__).parents[2]


def found(world: World, **config: Any) -> Agents:
    write(world.ours / "holdfast.json", config)
    return agents.agents(world.load(), world.agent_places)


def verdicts(world: World, agent: str, *asked: tuple[str, str]) -> list[str]:
    rules = found(world).get(agent).permission
    return [evaluate.evaluate(key, pattern, rules) for key, pattern in asked]


def test_the_built_in_agents(world: World) -> None:
    """The default first, then by name; three of them work behind the scenes."""
    listed = found(world)

    assert listed.default == "build"
    assert [(each.name, each.mode, each.hidden or False) for each in listed.all] == [
        ("build", "primary", False),
        ("compaction", "primary", True),
        ("explore", "subagent", False),
        ("general", "subagent", False),
        ("plan", "primary", False),
        ("summary", "primary", True),
        ("title", "primary", True),
    ]
    assert {each.name for each in listed.all if each.prompt is None} == {"build"}
    assert all(each.native for each in listed.all)
    assert listed.get("title").temperature == 0.5


def test_what_build_may_do(world: World) -> None:
    """Nearly everything; it asks before it leaves the worktree, reads secrets or turns in circles."""
    data = world.home / "data"
    assert verdicts(
        world,
        "build",
        ("bash", "rm -rf x"),
        ("edit", "a.py"),
        ("doom_loop", "bash"),
        ("external_directory", "/etc/x"),
        ("external_directory", f"{data}/tool-output/x"),
        ("external_directory", "/tmp/x"),
        ("external_directory", "/tmp/holdfast-1/x"),
        ("external_directory", f"{world.home}/skills/a/b"),
        ("read", "a/.env"),
        ("read", "a/.env.local"),
        ("read", ".env.example"),
        ("question", "x"),
        ("plan_enter", "x"),
        ("plan_exit", "x"),
    ) == [
        *["allow", "allow", "ask", "ask", "allow"],
        *["ask", "allow", "allow"],
        *["ask", "ask", "allow", "allow", "allow", "deny"],
    ]


def test_what_plan_may_do(world: World) -> None:
    """It edits plans only, hands no work to the general agent, and leaves by its own door."""
    assert verdicts(
        world,
        "plan",
        ("edit", "a.py"),
        ("edit", ".opencode/plans/x.md"),
        ("edit", ".holdfast/plans/x.md"),
        ("edit", "../home/data/plans/x.md"),
        ("edit", f"{world.home}/data/plans/x.md"),
        ("external_directory", f"{world.home}/data/plans/x"),
        ("task", "general"),
        ("task", "explore"),
        ("plan_exit", "x"),
        ("plan_enter", "x"),
        ("question", "x"),
    ) == ["deny", *["allow"] * 5, "deny", "allow", "allow", "deny", "allow"]


def test_what_the_others_may_do(world: World) -> None:
    """Explore only looks; the general agent keeps no list; those behind the scenes do nothing."""
    asked = [(key, "x") for key in ("grep", "glob", "list", "bash", "webfetch", "websearch", "read")]
    assert verdicts(world, "explore", *asked) == ["allow"] * 7
    assert verdicts(world, "explore", ("edit", "x"), ("task", "x"), ("external_directory", "/etc/x")) == [
        "deny",
        "deny",
        "ask",
    ]
    assert verdicts(world, "general", ("todowrite", "*"), ("edit", "x")) == ["deny", "allow"]
    for name in ("compaction", "title", "summary"):
        assert verdicts(world, name, ("read", "x"), ("bash", "x")) == ["deny", "deny"]


def test_settings_change_an_agent(world: World) -> None:
    """Field by field; the person's permissions come before the agent's own."""
    listed = found(
        world,
        permission={"bash": "ask"},
        agent={
            "build": {
                "model": "local/a/b",
                "variant": "high",
                "temperature": 0.1,
                "topP": 0.9,
                "maxSteps": 7,
                "prompt": "Mine.",
                "color": "#00ff00",
                "tools": {"write": False},
                "permission": {"edit": {"docs/*": "allow"}},
                "options": {"a": 1},
                "b": 2,
            }
        },
    )
    build = listed.get("build")

    assert build.model == ModelRef(provider_id="local", model_id="a/b")
    assert (build.variant, build.temperature, build.top_p, build.steps) == ("high", 0.1, 0.9, 7)
    assert (build.prompt, build.color, build.options) == ("Mine.", "#00ff00", {"a": 1, "b": 2})
    tool_output = f"{world.home}/data/tool-output/*"
    assert build.permission[-4:] == [
        Rule(permission="bash", pattern="*", action="ask"),
        Rule(permission="edit", pattern="*", action="deny"),
        Rule(permission="edit", pattern="docs/*", action="allow"),
        Rule(permission="external_directory", pattern=tool_output, action="allow"),
    ]


def test_an_explicit_deny_of_kept_output_stays(world: World) -> None:
    """Every agent may read kept tool output, unless just that is denied."""
    pattern = f"{world.home}/data/tool-output/*"
    listed = found(
        world,
        agent={
            "a": {"permission": {"external_directory": "deny"}},
            "b": {"permission": {"external_directory": {pattern: "deny"}}},
        },
    )

    def verdict(name: str) -> str:
        return evaluate.evaluate("external_directory", pattern[:-1] + "x", listed.get(name).permission)

    assert (verdict("a"), verdict("b")) == ("allow", "deny")


def test_a_new_agent_has_the_usual_permissions(world: World) -> None:
    """Mode `all`, the defaults, then the person's rules; `disable` removes an agent."""
    listed = found(
        world, permission={"bash": "deny"}, agent={"mine": {"prompt": "p"}, "plan": {"disable": True}}
    )
    mine = listed.get("mine")

    assert (mine.mode, mine.native) == ("all", False)
    assert evaluate.evaluate("bash", "x", mine.permission) == "deny"
    assert evaluate.evaluate("question", "x", mine.permission) == "deny"
    with pytest.raises(NotFound, match="there is no agent 'plan'; there are build, explore, general, mine"):
        listed.get("plan")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nobody", "the default agent nobody does not exist; name another"),
        ("explore", "the default agent explore is a subagent; name another"),
        ("title", "the default agent title is hidden; name another"),
    ],
)
def test_a_wrong_default_agent_is_an_error(named: str, said: str, world: World) -> None:
    """With the place of the setting."""
    with pytest.raises(InvalidInput) as raised:
        found(world, default_agent=named)

    assert str(raised.value) == f"{world.ours}/holdfast.json:2: {said}"


def test_the_default_agent(world: World) -> None:
    """The one that is named, else build, else the first that a person could talk to."""
    assert [each.name for each in found(world, default_agent="plan").all][:2] == ["plan", "build"]
    assert found(world, agent={"build": {"disable": True}, "aa": {"mode": "subagent"}}).default == "plan"
    disabled = {"build": {"disable": True}, "plan": {"disable": True}}
    with pytest.raises(InvalidInput, match="no agent is left"):
        found(world, agent=disabled)


def test_a_model_must_name_its_provider(world: World) -> None:
    """The error says where."""
    with pytest.raises(InvalidInput, match=r"holdfast.json:4: the model of agent build must be written as"):
        found(world, agent={"build": {"model": "gpt"}})


def test_agents_go_over_the_wire(world: World) -> None:
    """The form is the protocol's, and comes back as it went."""
    build = found(world, agent={"build": {"model": "a/b", "topP": 0.5}}).get("build")
    body = msgspec.json.decode(encode(build))

    assert body.keys() == {"name", "description", "mode", "native", "topP", "permission", "model", "options"}
    assert body["model"] == {"providerID": "a", "modelID": "b"}
    assert decode(type(build), encode(build)) == build


def test_the_example_agent_loads(world: World) -> None:
    """`examples/agents/librarian.md` is an agent that reads and does not write."""
    text = (ROOT / "examples/agents/librarian.md").read_text("utf-8")
    write(world.project / ".holdfast/agent/librarian.md", text)
    loaded = world.load()
    librarian = agents.agents(loaded, world.agent_places).get("librarian")

    assert loaded.warnings == ()
    assert librarian.mode == "subagent"
    assert librarian.prompt is not None
    assert {key: evaluate.evaluate(key, "x", librarian.permission) for key in ("read", "edit", "bash")} == {
        "read": "allow",
        "edit": "deny",
        "bash": "deny",
    }


def test_commands(world: World) -> None:
    """Two come with us, settings add and replace; hints are the placeholders."""
    write(
        world.ours / "command/git/fix.md",
        "---\ndescription: d\nagent: plan\n---\nFix $2 of $1 $2: $ARGUMENTS",
    )
    write(world.ours / "holdfast.json", {"command": {"init": {"template": "mine"}}})
    listed = commands(world.load())

    assert list(listed) == ["init", "review", "git/fix"]
    assert listed["init"].template == "mine"
    assert listed["review"].subtask
    assert listed["git/fix"].hints == ["$1", "$2", "$ARGUMENTS"]
    assert msgspec.json.decode(encode(listed["git/fix"])) == {
        "name": "git/fix",
        "description": "d",
        "agent": "plan",
        "source": "command",
        "template": "Fix $2 of $1 $2: $ARGUMENTS",
        "hints": ["$1", "$2", "$ARGUMENTS"],
    }
    assert hints("$10 $2 $1") == ["$1", "$2", "$10"]


def test_the_names_are_those_of_the_built_ins(world: World) -> None:
    """The lists that guard names against strangers are complete, and each text is there."""
    assert tuple(builtin_agents.builtin(world.agent_places)) == builtin_agents.NAMES
    assert tuple(builtin_commands.builtin()) == builtin_commands.NAMES
    assert all(len(each.template) > 200 for each in builtin_commands.builtin().values())
