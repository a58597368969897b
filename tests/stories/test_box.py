"""Commands of agents run in a box; outside of one only by the user's word."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import processes
from holdfast.location.box import host_level, interpreter
from holdfast.location.box.host_level import HostLevel
from holdfast.location.box.waiting_launcher import WaitingLauncher
from holdfast.location.guard import Guard
from holdfast.schema.request import PermissionAnswer, PermissionRequest
from holdfast.schema.tool_state import ToolCompleted
from holdfast.testing.mock_provider import MockProvider, Reply
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from tests.location.box.users import BASE, folder_of
from tests.stories import inside
from tests.stories.boxed_shell import ran, sh
from tests.stories.processes import Place, Worker
from tests.stories.world import World
from tests.until import until

pytestmark = pytest.mark.needs("box")

ALLOW = {"*": "allow"}
"""A rule for everything, which is no consent to leave the box."""
LONG = f"9{os.getpid():06}"
"""How long programs sleep here: a word by which they are told from those of other runs on this machine."""
PORT = str(20_000 + os.getpid() % 10_000)
"""As above; in the box every port is free."""
FULL = {"level": "full", "mode": "workspace", "network": False, "stopped": []}


class Person:
    """Answers every question in one way, and keeps what was asked."""

    def __init__(self, reply: Any = "once") -> None:
        self.asked: list[tuple[str, list[str], Any]] = []
        self._reply = reply

    async def __call__(self, request: PermissionRequest) -> PermissionAnswer:
        self.asked.append((request.permission, request.patterns, request.metadata.get("reason")))
        return PermissionAnswer(reply=self._reply, message="no" if self._reply == "reject" else None)


async def run(
    world: World, command: str, *, reason: str | None = None, agent: str | None = None, **options: Any
) -> tuple[str, Any]:
    """One command of the model, and how it ended."""
    arguments = {"command": command} | ({} if reason is None else {"reason": reason})
    async with world.open(Step(Call("sh", arguments, id="c")), Step(Say("ok")), **options) as (hf, _):
        hf.tools.register(sh)
        session = await world.session(hf)
        ((output, facts),) = await ran(hf, session, **({} if agent is None else {"agent": agent}))
        return output, facts


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """As for other stories, but not in /tmp, which a box covers."""
    with folder_of(os.geteuid()) as root:
        home = root / "home"
        home.mkdir()
        monkeypatch.setenv("HOME", str(home))
        yield World(root, home)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make this host one of a lesser kind."""

    def made(level: Any) -> None:
        found = HostLevel(level, "no user namespaces")
        monkeypatch.setattr(host_level, "host_level", lambda state: found)

    return made


async def test_allow_means_boxed(world: World) -> None:
    """The project is written, the rest is not; what was stopped is said, and nobody was asked."""
    outside = world.home / "file"

    output, facts = await run(world, f"echo in > made; echo out > {outside}")

    assert "Read-only file system" in output
    assert facts == {**FULL, "stopped": [f"a write to {outside}"]}
    assert ((world.project / "made").read_text(), outside.exists()) == ("in\n", False)


@pytest.mark.ci
async def test_a_launcher_waits_for_the_next_command(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second command on; the guard knows its group before it begins, and none is left at the end."""
    happened: list[tuple[str, int]] = []
    watch, give = Guard.watch, WaitingLauncher.give

    def watching(self: Guard, group: int, *rest: str) -> None:
        happened.append(("watched", group))
        watch(self, group, *rest)

    def giving(self: WaitingLauncher, *rest: Any) -> None:
        happened.append(("given", self.process.pid))
        give(self, *rest)

    monkeypatch.setattr(Guard, "watch", watching)
    monkeypatch.setattr(WaitingLauncher, "give", giving)
    steps = [Step(Call("sh", {"command": f"echo {number} $HOME"}, id=f"c{number}")) for number in range(3)]
    async with world.open(*steps, Step(Say("ok"))) as (hf, _):
        hf.tools.register(sh)
        outputs = [output for output, _ in await ran(hf, await world.session(hf))]
        last = inside.waiting_launcher(hf)
    assert outputs == [f"{number} {world.home}\n" for number in range(3)]
    first, second, third = (pid for what, pid in happened if what == "watched")
    assert happened == [
        ("watched", first),
        ("watched", second),
        ("given", second),
        ("watched", third),
        ("given", third),
    ]
    assert last is not None
    assert last.returncode is not None


@pytest.mark.needs("bash")
async def test_a_command_of_the_user_s_own_is_never_boxed(world: World) -> None:
    """Whatever the settings say of the agent's."""
    world.settings(sandbox={"mode": "read-only"})
    outside = world.home / "file"
    async with world.open() as (hf, _):
        await hf.sessions.shell(await world.session(hf), f"echo out > {outside}")
    assert outside.read_text() == "out\n"


@pytest.mark.ci
async def test_our_own_files_and_keys_are_hidden(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials, settings and state; managed output stays readable."""
    data = world.home / ".local/share/holdfast"
    (data / "tool-output").mkdir(parents=True)
    (data / "tool-output" / "kept").write_text("kept")
    (data / "auth.json").write_text("secret")

    stored, _ = await run(world, f"wc -c {world.store.removeprefix('sqlite://')}")
    output, _ = await run(
        world, f"cat {data}/tool-output/kept; cat {data}/auth.json {world.home}/.config/holdfast/*; ls {data}"
    )

    assert "Permission denied" in stored
    assert output.startswith("kept")
    assert "secret" not in output
    assert (output.count("No such file"), output.count("Permission denied")) == (1, 2)


async def test_outside_by_the_users_answer(world: World) -> None:
    """The model gives its reason, the user is asked with it, and the command has the user's rights."""
    person, outside = Person(), world.home / "file"

    _, facts = await run(world, f"echo out > {outside}", reason="the box stopped it", on_ask=person)

    assert person.asked == [("unconfined", [f"echo out > {outside}"], "the box stopped it")]
    assert (facts["mode"], facts["network"], outside.read_text()) == ("off", True, "out\n")


async def test_a_no_runs_nothing(world: World) -> None:
    """Neither inside nor outside."""
    output, said = await run(world, "touch made", reason="why", on_ask=Person("reject"))

    assert (output, "said no" in said, list(world.project.iterdir())) == ("error", True, [])


async def test_where_nobody_can_be_asked_the_setting_is_named(world: World) -> None:
    """One line says which would allow it."""
    output, said = await run(world, "touch made", reason="why")

    assert (output, list(world.project.iterdir())) == ("error", [])
    assert said == (
        "unconfined for touch made needs the user's consent, which cannot be asked for here; "
        '`"permission": {"unconfined": "allow"}` in your own settings would allow it.'
    )


async def test_an_answer_for_good_is_one(world: World) -> None:
    """The same command asks once."""
    person, command = Person("always"), f"touch {world.home}/file"
    calls = [Step(Call("sh", {"command": command, "reason": "why"}, id=f"c{n}")) for n in range(2)]
    async with world.open(*calls, Step(Say("ok")), on_ask=person) as (hf, _):
        hf.tools.register(sh)
        await ran(hf, await world.session(hf))

    assert person.asked == [("unconfined", [command], "why")]


async def test_a_rule_lets_it_out(world: World) -> None:
    """The user wrote it."""
    world.settings(permission={"unconfined": {"touch *": "allow"}})

    await run(world, f"touch {world.home}/file", reason="why")

    assert (world.home / "file").exists()


@pytest.mark.parametrize("agent", ["plan", "explore"])
@pytest.mark.parametrize("settings", [{}, {"sandbox": {"mode": "off"}}])
async def test_an_agent_that_only_reads_changes_nothing(world: World, agent: str, settings: Any) -> None:
    """In fact, whatever the settings say; temporary files it may write."""
    world.settings(**settings, agent={agent: {"mode": "all"}})

    output, facts = await run(world, "touch made; touch /tmp/a && echo temporary", agent=agent)

    assert (output.endswith("temporary\n"), facts["mode"]) == (True, "read-only")
    assert list(world.project.iterdir()) == []


@pytest.mark.parametrize("agent", ["plan", "explore"])
async def test_an_agent_that_only_reads_runs_nothing_outside(world: World, agent: str) -> None:
    """Not by a rule of the user either, and nobody is asked."""
    world.settings(permission={"unconfined": "allow"}, agent={agent: {"mode": "all"}})
    person = Person()

    output, said = await run(world, "touch made", reason="why", agent=agent, on_ask=person)

    assert (output, person.asked, list(world.project.iterdir())) == ("error", [], [])
    assert said == f"The agent {agent} only reads: it runs nothing outside a box."


async def test_an_agent_that_a_reading_one_starts_only_reads_too(world: World) -> None:
    """A child is no freer than its parent."""
    arguments = {"command": "touch made"}
    async with world.open(Step(Call("sh", arguments, id="c")), Step(Say("ok"))) as (hf, _):
        hf.tools.register(sh)
        parent = (await hf.sessions.create(directory=world.project, agent="plan")).id
        child = (await hf.sessions.create(directory=world.project, parent=parent, agent="build")).id
        ((_, facts),) = await ran(hf, child, agent="build")

    assert (facts["mode"], list(world.project.iterdir())) == ("read-only", [])


@pytest.mark.parametrize("level", ["partial", "none"])
async def test_a_lesser_host_asks(world: World, host: Any, level: str) -> None:
    """With what stands in the way; a rule for everything is no consent to this."""
    host(level)
    world.settings(permission=ALLOW)
    person = Person()

    _, facts = await run(world, "echo in > made", on_ask=person)

    ((permission, patterns, reason),) = person.asked
    assert (permission, patterns, "no user namespaces" in reason) == ("unconfined", ["echo in > made"], True)
    assert (facts["level"], facts["mode"]) == (level, "workspace" if level == "partial" else "off")
    assert (world.project / "made").exists()


async def test_a_lesser_host_without_a_person_runs_nothing(world: World, host: Any) -> None:
    """And says which setting would allow it."""
    host("none")

    output, said = await run(world, "touch made")

    assert (output, list(world.project.iterdir())) == ("error", [])
    assert said.endswith('`"permission": {"unconfined": "allow"}` in your own settings would allow it.')


@pytest.mark.parametrize("permission", ["bash", "unconfined"])
async def test_a_lesser_host_runs_what_the_user_allowed_by_name(
    world: World, host: Any, permission: str
) -> None:
    """They wrote it."""
    host("none")
    world.settings(permission={permission: {"touch *": "allow"}})

    _, facts = await run(world, "touch made")

    assert (facts["level"], (world.project / "made").exists()) == ("none", True)


async def test_a_project_does_not_speak_for_the_user(world: World, host: Any) -> None:
    """Its own allow by name, trusted as it is, is no consent to run unconfined."""
    host("none")
    (world.project / "holdfast.json").write_text('{"permission": {"bash": "allow"}}')
    async with world.open(Step(Call("sh", {"command": "touch made"}, id="c")), Step(Say("ok"))) as (hf, _):
        await hf.trust.decide(world.project, granted=True)
        hf.tools.register(sh)
        ((output, _),) = await ran(hf, await world.session(hf))

    assert (output, (world.project / "made").exists()) == ("error", False)


async def test_a_reading_agent_asks_on_a_lesser_host(world: World, host: Any) -> None:
    """For each command, also where rules allow it by name."""
    host("none")
    world.settings(permission={"bash": "allow", "unconfined": "allow"})
    person = Person()

    await run(world, "true", agent="plan", on_ask=person)

    assert [each[:2] for each in person.asked] == [("bash", ["true"])]


async def test_a_box_may_be_required(world: World, host: Any) -> None:
    """Then a lesser host runs nothing, whatever is allowed."""
    host("partial")
    world.settings(sandbox={"require": True}, permission={"bash": "allow"})

    output, said = await run(world, "touch made", on_ask=Person())

    assert (output, list(world.project.iterdir())) == ("error", [])
    assert said.startswith("No command runs here: `sandbox.require` is set, and the box is partial")


async def test_off_is_the_users_word(world: World) -> None:
    """No box, no question."""
    world.settings(sandbox={"mode": "off"})

    _, facts = await run(world, f"touch {world.home}/file")

    assert (facts["mode"], (world.home / "file").exists()) == ("off", True)


async def test_a_worktree_that_holds_too_much_asks(world: World) -> None:
    """No box can be built around the home directory."""
    world.project = world.home
    person = Person("reject")

    output, _ = await run(world, "touch made", on_ask=person)

    ((permission, _, reason),) = person.asked
    assert (output, permission, "it is your home directory" in reason) == ("error", "unconfined", True)


async def test_a_launcher_that_fails_runs_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is told that the command did not run, and what the user can do."""
    inside_ok = interpreter.command
    monkeypatch.setattr(interpreter, "command", lambda python=(): [*inside_ok(python)[:-1], "/nowhere"])
    monkeypatch.setattr(host_level, "host_level", lambda state: HostLevel("full"))
    world.settings(sandbox={"network": True})

    output, said = await run(world, "touch made")

    assert (output, list(world.project.iterdir())) == ("error", [])
    assert (
        said
        == "The box around the command could not be built, so it did not run; `holdfast doctor` says why."
    )


async def test_what_steers_the_next_run_is_named(world: World) -> None:
    """Settings, plugins and instruction files that a command changed."""
    async with world.open(
        Step(Call("sh", {"command": "echo x > AGENTS.md; mkdir .holdfast; echo x > main.py"}, id="c")),
        Step(Say("ok")),
    ) as (hf, _):
        hf.tools.register(sh)
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        (part,) = [
            part.state
            for message in (await hf.sessions.messages(session)).messages
            for part in message.parts
            if isinstance(getattr(part, "state", None), ToolCompleted)
        ]

    assert part.metadata is not None
    assert part.metadata["said"] == [[], [str(world.project / "AGENTS.md")]]


async def test_nothing_is_left_running(world: World) -> None:
    """Not what went into a session of its own, nor what ignores the first signal."""
    command = f"trap '' TERM; setsid sleep {LONG} & nohup sleep {LONG} & echo started"

    output, _ = await run(world, command)

    assert output.endswith("started\n")
    await until(lambda: not alive(LONG))


async def test_bash_is_boxed_and_asks_to_leave(world: World) -> None:
    """The denial is found and shown; the model calls again with its reason, the user agrees, it runs once."""
    outside = world.home / "file"
    command = f"echo out >> {outside}"
    world.settings(permission=ALLOW)
    person = Person()
    async with world.open(
        Step(Call("bash", {"command": command}, id="c1")),
        Step(Call("bash", {"command": command, "unconfined": True, "reason": "it is wanted"}, id="c2")),
        Step(Say("ok")),
        on_ask=person,
    ) as (hf, _):
        session = await world.session(hf)
        (first, boxed), (second, free) = await ran(hf, session)

    stopped = f"a write to {outside}"
    assert f"(The box stopped {stopped}. Nothing was run again. If it is needed, call `bash` again" in first
    assert boxed == {**FULL, "stopped": [stopped]}
    assert [(asked, reason) for asked, _, reason in person.asked] == [("unconfined", "it is wanted")]
    assert (second, free["mode"], outside.read_text()) == ("(no output)", "off", "out\n")


async def test_bash_has_no_network_and_says_so(world: World) -> None:
    """By the kernel's count, not by what the program prints."""
    world.settings(permission=ALLOW)
    program = "import socket; socket.socket().connect_ex(('192.0.2.1', 9))"
    (world.project / "away.py").write_text(program)
    async with world.open(Step(Call("bash", {"command": f"{BASE} away.py"}, id="c")), Step(Say("ok"))) as (
        hf,
        _,
    ):
        ((output, facts),) = await ran(hf, await world.session(hf))

    assert facts["stopped"] == ["the network"]
    assert output.startswith("(no output)\n\n(The box stopped the network.")


async def test_bash_has_none_of_the_owners_keys(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in its environment nor in that of a process that it can see."""
    world.settings(permission=ALLOW)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hunter2")
    monkeypatch.setenv("HOLDFAST_SERVER_PASSWORD", "hunter2")
    async with world.open(
        Step(Call("bash", {"command": "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline"}, id="c")),
        Step(Say("ok")),
    ) as (hf, _):
        ((output, _),) = await ran(hf, await world.session(hf))

    assert "PATH=" in output
    assert "hunter2" not in output


@pytest.mark.ci
async def test_a_killed_owner_leaves_no_boxed_process(
    place: Place, mock: MockProvider, workers: tuple[Worker, Worker]
) -> None:
    """The guard ends the group of the launcher, and the kernel the rest."""
    mock.play(Reply((Call("bash", {"command": f"setsid sleep {LONG} & sleep {LONG}"}, id="c"),)))
    session = str(await workers[0].do("create", directory=str(place.project)))
    await workers[0].do("prompt", session=session, text="go")
    await until(lambda: alive(LONG))

    await workers[0].kill()

    await until(lambda: not alive(LONG))


@pytest.mark.ci
@pytest.mark.needs("curl")
async def test_a_server_in_the_background_serves_the_next_command(world: World) -> None:
    """Both are boxed; what the box stopped in the background is said when its output is read."""
    world.settings(permission=ALLOW)
    (world.project / "page").write_text("hello\n")
    server = f"touch {world.home}/out; {BASE} -u -m http.server --bind 127.0.0.1 {PORT}"
    curl = f"curl -s --retry 50 --retry-connrefused --retry-delay 1 http://127.0.0.1:{PORT}/page"
    async with world.open(
        Step(Call("bash", {"command": server, "background": True}, id="s")),
        Step(Call("bash", {"command": curl}, id="c")),
        Step(Say("ok")),
    ) as (hf, script):
        session = await world.session(hf)
        (_, background), (page, _) = await ran(hf, session)
        (made,) = inside.engine(hf).background.of(session)
        script.add(Step(Call("process", {"action": "end", "id": made.id}, id="e")), Step(Say("ok")))
        *_, (read, _) = await ran(hf, session, "end it")
        await until(lambda: not alive(PORT))

    assert (background, page.rstrip()) == (FULL, "hello")
    assert f"(The box stopped a write to {world.home}/out." in read


@pytest.mark.ci
async def test_an_interrupt_ends_the_box(world: World) -> None:
    """With all that is in it."""
    world.settings(permission=ALLOW)
    async with world.open(
        Step(Call("bash", {"command": f"setsid sleep {LONG} & trap '' TERM; sleep {LONG}; sleep 1"}, id="c"))
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        await until(lambda: alive(LONG))
        await hf.sessions.interrupt(session)
        await until(lambda: not alive(LONG))


@pytest.mark.ci
async def test_commands_of_a_session_share_a_network_until_the_process_closes(world: World) -> None:
    """One for each session, kept by descriptors of this process alone."""
    steps = [Step(Call("sh", {"command": "readlink /proc/self/ns/net"}, id=f"c{n}")) for n in range(2)]
    async with world.open(
        *steps,
        Step(Say("ok")),
        Step(Call("sh", {"command": "readlink /proc/self/ns/net"}, id="d")),
        Step(Say("ok")),
    ) as (hf, _):
        hf.tools.register(sh)
        one, two = await world.session(hf), await world.session(hf)
        (first, _), (second, _) = await ran(hf, one)
        ((other, _),) = await ran(hf, two)
        networks = dict(inside.engine(hf).boxes._networks)
        held = [number for network in networks.values() for number in network.descriptors]

    assert first == second != other
    assert first.strip() != str(Path("/proc/self/ns/net").readlink())
    assert sorted(networks) == sorted((one, two))
    assert not any(is_namespace(number) for number in held)


def is_namespace(descriptor: int) -> bool:
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink()).startswith(("net:", "user:"))
    except OSError:
        return False


def alive(word: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if word in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                    return bool(processes.started(int(entry.name)))
            except OSError:
                continue
    return False
