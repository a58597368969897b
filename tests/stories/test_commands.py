"""Commands of the model in a real shell: what they see, how they end, and what is left of them."""

import json
from pathlib import Path

import anyio
import pytest

from holdfast import processes
from holdfast.schema.tool_state import ToolCompleted, ToolError
from holdfast.testing.mock_provider import MockProvider, Reply
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step, answered
from tests.stories.processes import Place, Worker
from tests.stories.processes import calls as calls_of
from tests.stories.world import World
from tests.until import until

pytestmark = pytest.mark.needs("bash")


def bash(command: str, id: str = "c", **more: object) -> Call:
    """A call of the tool."""
    return Call("bash", {"command": command, **more}, id=id)


def pids_of(path: Path) -> list[int]:
    """The processes that wrote their numbers into a file."""
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that was not waited for does not."""
    return processes.started(pid) != ""


@pytest.mark.needs("box")
async def test_a_command_sees_the_user_s_environment_without_keys(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor Holdfast's own variables, nor what the settings hide; a plugin adds to it."""
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "HOLDFAST_X", "OPENCODE_X", "HIDDEN_X", "SEEN_X"):
        monkeypatch.setenv(name, "1")
    world.settings(permission={"*": "allow"}, environment={"hide": ["HIDDEN_*"], "keep": ["GITHUB_TOKEN"]})
    folder = world.home / ".config" / "holdfast" / "plugin"
    folder.mkdir(parents=True)
    (folder / "team.py").write_text(
        "class Team:\n    async def shell_env(self, input, output):\n"
        "        output.env['PLUGIN_X'] = f'{input.cwd} {input.session_id} {input.call_id}'\n\n"
        "def plugin(context):\n    return Team()\n"
    )
    command = "env | grep -E '^(OPENAI|GITHUB|HOLDFAST_X|OPENCODE|HIDDEN|SEEN|PLUGIN|TERM)' | sort"
    async with world.open(Step(bash(command)), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        state = calls_of((await hf.sessions.messages(session)).messages)["c"].state
    assert isinstance(state, ToolCompleted)
    assert state.output.split("\n") == [
        "GITHUB_TOKEN=1",
        f"PLUGIN_X={world.project} {session} c",
        "SEEN_X=1",
        "TERM=dumb",
    ]


@pytest.mark.ci
async def test_without_a_user_what_is_not_allowed_is_denied_in_words(world: World) -> None:
    """Each simple command counts, and what cannot be understood asks for what it might be."""
    world.settings(permission={"bash": {"*": "ask", "echo *": "allow"}})
    calls = [
        bash("echo a; make", "a"),
        bash("echo $(make)", "b"),
        bash('eval "echo a"', "d"),
        bash("echo ok", "e"),
    ]
    async with world.open(Step(*calls), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        states = {
            id: part.state for id, part in calls_of((await hf.sessions.messages(session)).messages).items()
        }
    said = {
        id: getattr(state, "error", None) or getattr(state, "output", None) for id, state in states.items()
    }
    assert said == {
        "a": "bash for echo a, make needs the user's consent, which cannot be asked for here.",
        "b": "bash for make, echo $(make) needs the user's consent, which cannot be asked for here.",
        "d": 'bash for eval "echo a" needs the user\'s consent, which cannot be asked for here. What the '
        "command does could not be told in advance: eval is not understood. Write it more plainly, with its "
        "names and paths spelled out.",
        "e": "ok",
    }


async def test_other_spellings_and_riddles_do_not_get_around_a_rule(world: World) -> None:
    """A rule against a command holds for `/bin/rm` too, and what may be anything is not allowed by `*`."""
    world.settings(permission={"*": "allow", "bash": {"*": "allow", "rm *": "deny"}})
    (world.project / "x").touch()
    calls = [bash("/bin/rm x", "a"), bash("A=1 r''m x", "b"), bash('eval "r""m x"', "d")]
    async with world.open(Step(*calls), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        found = calls_of((await hf.sessions.messages(session)).messages)
    outcomes = {
        id: (getattr(part.state, "metadata", None) or {}).get("outcome") for id, part in found.items()
    }
    assert outcomes == {"a": "denied", "b": "denied", "d": "denied"}
    assert (world.project / "x").exists()


@pytest.mark.ci
async def test_an_interrupted_command_is_told_with_what_it_printed(world: World) -> None:
    """Its processes end, also one that has left their group; the record keeps the output, and does not say
    that nothing has happened.
    """
    world.settings(permission={"*": "allow"}, sandbox={"mode": "off"})  # In a box ids are others.
    pids = world.project / "pids"
    command = "echo $$ >> pids; setsid sh -c 'echo $$ >> pids; sleep 300' & echo begun; sleep 300"
    expect = answered("c", "begun\n\n(The call was interrupted while it was at work.")
    async with world.open(Step(bash(command)), Step(Say("ok"), expect=expect)) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: len(pids_of(pids)) == 2)

        async def is_shown() -> bool:
            state = calls_of((await hf.sessions.messages(session)).messages)["c"].state
            return "begun" in str((getattr(state, "metadata", None) or {}).get("output"))

        await until(is_shown)
        with anyio.fail_after(20):
            await hf.sessions.interrupt(session)
        state = calls_of((await hf.sessions.messages(session)).messages)["c"].state
        assert isinstance(state, ToolError)
        assert (state.metadata or {})["output"].startswith("begun\n\n(The call was interrupted while it")
        assert (state.metadata or {})["outcome"] == "unknown"
        await until(lambda: not any(map(is_alive, pids_of(pids))))
        await hf.sessions.process(session, "and now?")


@pytest.mark.ci
async def test_nothing_outlives_a_command_that_ended(world: World) -> None:
    """What it left in its group, what forked away, and what does not listen to TERM."""
    world.settings(permission={"*": "allow"}, sandbox={"mode": "off"})  # In a box ids are others.
    pids = world.project / "pids"
    command = (
        "echo $$ >> pids; (trap '' TERM; echo $BASHPID >> pids; sleep 300; sleep 300) & "
        "setsid -f sh -c 'echo $$ >> pids; exec sleep 300' > /dev/null 2>&1; "
        "setsid nohup bash -c 'trap \"\" TERM; echo $$ >> pids; sleep 300' > /dev/null 2>&1 & "
        "while [ $(wc -l < pids) -lt 4 ]; do sleep 0.02; done"
    )
    async with world.open(Step(bash(command)), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        assert len(pids_of(pids)) == 4
        await until(lambda: not any(map(is_alive, pids_of(pids))))


@pytest.mark.ci
async def test_a_killed_owner_s_command_is_unknown_and_its_processes_end(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """The guard ends them, whoever left the group too; the model is told when the user goes on."""
    one, two = workers
    place.settings(sandbox={"mode": "off"})  # In a box ids are others.
    pids = place.project / "pids"
    command = "echo begun; echo $$ >> pids; setsid sh -c 'echo $$ >> pids; sleep 300' & sleep 300"
    mock.play(Reply((bash(command),)))
    session = str(await one.do("create", directory=str(place.project)))
    await one.do("prompt", session=session, text="go")
    await until(lambda: len(pids_of(pids)) == 2)

    async def is_stored() -> bool:
        return "begun\\n" in str(await place.messages(session))

    await until(is_stored)
    await one.kill()
    await until(lambda: not any(map(is_alive, pids_of(pids))))

    mock.play(Reply((Say("I see."),)))
    await two.do("prompt", session=session, text="go on")
    await until(lambda: "I see." in str(mock.requests) or len(mock.requests) >= 2)
    state = calls_of(await place.messages(session))["c"].state
    assert isinstance(state, ToolError)
    assert (state.metadata or {})["outcome"] == "unknown"
    assert "Whether it took effect is unknown" in json.dumps(mock.requests[-1].json)
    assert [each.name for each in place.project.iterdir()] == ["pids"]
