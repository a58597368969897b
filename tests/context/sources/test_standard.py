"""All sources of a turn: which there are, in which order, and what a switch of model or agent changes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.config.instructions import InstructionSource
from holdfast.context.results import Initialized, Unchanged, Updated
from holdfast.context.snapshot import Snapshot, SnapshotEntry
from holdfast.context.source import Codec, ContextSource
from holdfast.context.sources import remote_instructions
from holdfast.context.sources.files import sampled_in
from holdfast.context.sources.standard import ContextWorld, standard
from holdfast.errors import Conflict
from holdfast.net.stream import Http
from holdfast.permission.policy import Policy
from holdfast.provider.catalog.model import Model, WireKind
from holdfast.schema.permission import Rule
from holdfast.testing.clock import FakeClock
from holdfast.testing.mock_provider import MockProvider, Raw
from tests.config.world import write
from tests.context.sources.world import SourceWorld

ALLOW = Rule(permission="*", pattern="*", action="allow")
MODEL = Model(provider_id="a", id="m", api_id="m", name="M", wire=WireKind.SCRIPTED)


@pytest.fixture
async def around(world: SourceWorld) -> AsyncIterator[ContextWorld]:
    http = Http()
    yield ContextWorld(
        places=world.places,
        git=True,
        loaded=world.loaded(),
        trusted=world.trusted,
        policy=Policy((ALLOW,)),
        model=MODEL,
        tools=frozenset({"read", "skill"}),
        clock=FakeClock(),
        zone="UTC",
        http=http,
        cache=world.home / "cache",
        warn=world.warnings.append,
    )
    await http.aclose()


async def test_the_least_there_is(around: ContextWorld) -> None:
    """Without settings, skills, tools and nested files."""
    assert standard(around).keys == (
        "core/environment",
        "core/instructions",
        "core/skills",
        "core/model",
        "core/date",
    )
    assert "core/skills" not in standard(replace(around, tools=frozenset({"read"}))).keys


async def test_everything_there_is(world: SourceWorld, around: ContextWorld) -> None:
    """In one order, whatever order things were given in; all of it makes one baseline."""

    async def load() -> str:
        return "x"

    plugins: list[ContextSource[Any]] = [
        ContextSource(key=key, codec=Codec(str), load=load, baseline=str, update=lambda _, now: now)
        for key in ("z/one", "b/two")
    ]
    write(world.project / "AGENTS.md", "standing")
    write(world.ours / "skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n")
    inner = [write(world.sub / name / "AGENTS.md", name) for name in ("y", "x")]
    async with MockProvider() as host:
        host.play(Raw((b"fetched",), 200, {}))
        settings = {"instructions": [f"{host.url}/a"], "references": {"r": str(world.outside)}}
        write(world.ours / "holdfast.json", settings)
        context = standard(
            replace(
                around,
                loaded=world.loaded(),
                model=replace(MODEL, tool_call=False),
                nested=tuple(inner),
                plugins=tuple(plugins),
            )
        )
        begun = await context.initialize()

    assert context.keys == (
        "core/environment",
        "core/instructions",
        "core/instructions/remote",
        "core/skills",
        "core/references",
        "core/files",
        "core/instructions/nested/sub/x/AGENTS.md",
        "core/instructions/nested/sub/y/AGENTS.md",
        "b/two",
        "z/one",
        "core/model",
        "core/date",
    )
    assert isinstance(begun, Initialized)
    assert sorted(begun.snapshot) == sorted(context.keys)
    assert begun.baseline.startswith("This is where you work:\n")
    assert begun.baseline.endswith(
        "x\n\nx\n\nThe model that answers is M (a/m).\n\nToday's date is 2027-01-15."
    )
    assert world.warnings == []


async def test_a_stranger_fetches_nothing(world: SourceWorld, around: ContextWorld) -> None:
    """An address in a project that nobody trusts has no source."""
    write(world.project / "holdfast.json", {"instructions": ["https://evil.example/a"]})

    loaded = world.loaded()
    assert "core/instructions/remote" not in standard(replace(around, loaded=loaded)).keys
    smuggled = InstructionSource("https://evil.example/a", world.project, contained=True)
    loaded = replace(loaded, instructions=(smuggled,))
    assert "core/instructions/remote" not in standard(replace(around, loaded=loaded)).keys
    world.trust = True
    assert "core/instructions/remote" in standard(replace(around, loaded=world.loaded())).keys


async def test_a_switch_of_models_does_not_end_the_epoch(world: SourceWorld, around: ContextWorld) -> None:
    """To one without tools and back: every change is an update, and the files are sampled once."""
    write(world.project / "one", "x")
    begun = await standard(around).initialize()
    assert isinstance(begun, Initialized)

    other = replace(around, model=replace(MODEL, id="n", name="N", tool_call=False), tools=frozenset())
    first = await standard(other).reconcile(begun.snapshot)
    assert isinstance(first, Updated)
    assert first.text == (
        "These are the project's files:\n<files>\n  one\n</files>\n\nFrom here on the model that answers is "
        "N (a/n)."
    )
    write(world.project / "two", "x")
    sampled = sampled_in(first.snapshot)
    back = await standard(replace(around, sampled=sampled)).reconcile(first.snapshot)
    assert isinstance(back, Updated)
    assert back.text == (
        "The list of the project's files that you were given is not renewed any more.\n\n"
        "From here on the model that answers is M (a/m)."
    )


async def test_a_switch_of_agents_changes_what_may_be_loaded(
    world: SourceWorld, around: ContextWorld
) -> None:
    """Skills that the new agent is denied are told no more; what has to be asked is."""
    write(world.ours / "skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n")
    ask = Rule(permission="skill", pattern="*", action="ask")
    begun = await standard(replace(around, policy=Policy((ALLOW, ask)))).initialize()
    assert isinstance(begun, Initialized)
    assert "- s: d" in begun.baseline

    deny = Rule(permission="skill", pattern="s", action="deny")
    denied = await standard(replace(around, policy=Policy((ALLOW, deny)))).reconcile(begun.snapshot)
    assert isinstance(denied, Updated)
    assert denied.text == "The skills that you were told of are no longer available; do not try to load them."


async def test_what_the_model_was_told_holds_where_it_cannot_be_had(
    world: SourceWorld, around: ContextWorld
) -> None:
    """A plugin that fails, and an address that is away with its copy lost: nothing is taken back."""

    async def load() -> str:
        if world.trust:
            raise OSError("away")
        return "x"

    plugins = (
        ContextSource(key="a/b", codec=Codec(str), load=load, baseline=str, update=lambda _, now: now),
    )
    write(world.ours / "holdfast.json", {"instructions": ["http://127.0.0.1:1/a"]})
    around = replace(around, loaded=world.loaded(), plugins=plugins)
    begun = await standard(around).initialize()
    assert isinstance(begun, Initialized)
    assert begun.snapshot["a/b"].text == "x"
    fetched = SnapshotEntry([{"path": "http://127.0.0.1:1/a", "text": "Remote rule."}], "gone")
    told = Snapshot({**begun.snapshot, remote_instructions.KEY: fetched})
    world.trust = True

    assert await standard(replace(around, admitted=told)).reconcile(told) == Unchanged()


async def test_a_plugin_cannot_come_twice(around: ContextWorld) -> None:
    """Two sources under one key are a fault of the plugins, and named."""

    async def load() -> str:
        return "x"

    twice: ContextSource[Any] = ContextSource(
        key="a/b", codec=Codec(str), load=load, baseline=str, update=lambda _, now: now
    )
    with pytest.raises(Conflict, match="a/b"):
        standard(replace(around, plugins=(twice, twice)))
