"""Searches in a real session: its rules, its process groups, its bounds."""

from pathlib import Path

import anyio
import pytest

from holdfast.location.guard import Guard
from holdfast.schema.part import ToolPart
from holdfast.testing.mock_provider.script import Call, Say
from holdfast.testing.scripted_provider import Step
from holdfast.tools.builtin import search
from holdfast.tools.builtin.outside import UNSHOWN
from tests.stories.permissions import asked, outcomes
from tests.stories.world import Attached, World, is_shown
from tests.until import until


async def test_the_rules_of_read_hold_for_grep(world: World) -> None:
    """By default `.env` is asked for: grep leaves it out, until the user has allowed it for good."""
    (world.project / ".env").write_text("KEY=secret\n")
    (world.project / "a.py").write_text("KEY = 1\n")
    grep = {"pattern": "KEY"}
    async with world.open(
        Step(Call("grep", grep, id="a")),
        Step(Call("read", {"filePath": ".env"}, id="b")),
        Step(Call("grep", grep, id="c")),
        Step(Say("ok")),
        presence=Attached(),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (request,) = await asked(hf, session)
        await hf.sessions.reply(session, request.id, "always")
        await hf.sessions.wait(session)
        first, _, second = outcomes((await hf.sessions.messages(session)).messages)
    assert first == (
        "completed",
        (
            f"Found 1 match\n\n{world.project}/a.py:\n  Line 1: KEY = 1\n\n(1 file has matches that are not "
            "shown, since reading needs the user's consent. Read a file by its path to ask for it.)"
        ),
    )
    assert "Found 2 matches" in second[1]
    assert "Line 1: KEY=secret" in second[1]


async def test_a_denied_search_does_not_run(world: World) -> None:
    """By its pattern, or by a path outside that nobody can be asked about."""
    world.settings(permission={"grep": {"*": "allow", "*password*": "deny"}})
    async with world.open(
        Step(
            Call("grep", {"pattern": "password"}, id="a"),
            Call("glob", {"pattern": "*", "path": ".."}, id="b"),
            Call("list", {"path": "/etc"}, id="c"),
        ),
        Step(Say("ok")),
    ) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        found = outcomes((await hf.sessions.messages(session)).messages)
    assert [outcome for outcome, _ in found] == ["error"] * 3
    assert found[0][1] == "The rules deny grep for password."
    assert all("external_directory" in text for _, text in found[1:])


async def test_an_interrupted_search_is_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program too: it runs in a group of its own, which the guard knows; the record does not, which would
    take as long as a search.
    """
    watched: list[int] = []
    watch = Guard.watch

    def watching(self: Guard, group: int, *rest: str) -> None:
        watched.append(group)
        watch(self, group, *rest)

    reading, read = anyio.Event(), search._Reading.read

    async def begin(self: search._Reading) -> None:
        reading.set()
        await read(self)

    monkeypatch.setattr(Guard, "watch", watching)
    monkeypatch.setattr(search._Reading, "read", begin)
    program = world.home / "rg"
    program.write_text(f"#!/bin/sh\necho $$ > {world.home}/pid\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr("holdfast.location.ripgrep.program", lambda: str(program))
    async with world.open(Step(Call("grep", {"pattern": "x"}, id="a"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        path = anyio.Path(world.home / "pid")

        async def has_begun() -> str:
            return (await path.read_text()).strip() if await path.exists() else ""

        pid = await until(has_begun)
        with anyio.fail_after(60):
            await reading.wait()
        assert watched == [int(pid)]
        assert not await is_shown(hf, session, "pgid")
        await hf.sessions.interrupt(session)

        async def is_gone() -> bool:
            return not await anyio.Path(f"/proc/{pid}/cmdline").exists()

        await until(is_gone)
        page = await hf.sessions.messages(session)
    (part,) = [part for message in page.messages for part in message.parts if isinstance(part, ToolPart)]
    assert (part.state.metadata or {})["outcome"] == "interrupted"


async def test_a_denied_folder_outside_is_not_searched_from_above(world: World, tmp_path: Path) -> None:
    """The rule that stops `read` there stops `grep`, `glob` and `list` too; what lies beside it is shown."""
    out = tmp_path.resolve() / "out"
    (out / "secret/deep").mkdir(parents=True)
    (out / "open").mkdir()
    for name in ("secret/k.txt", "secret/deep/k.txt", "open/a.txt", "b.txt"):
        (out / name).write_text("KEY\n")
    world.settings(permission={"external_directory": {"*": "allow", f"{out}/secret/*": "deny"}})
    calls = [
        Call("read", {"filePath": f"{out}/secret/k.txt"}, id="a"),
        Call("grep", {"pattern": "KEY", "path": str(out)}, id="b"),
        Call("glob", {"pattern": "*.txt", "path": str(out)}, id="c"),
        Call("list", {"path": str(out)}, id="d"),
    ]
    async with world.open(*(Step(call) for call in calls), Step(Say("ok"))) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.process(session, "go")
        read, grep, glob, listed = outcomes((await hf.sessions.messages(session)).messages)
    assert read[0] == "error"
    assert grep[1].startswith(
        f"Found 2 matches\n\n{out}/b.txt:\n  Line 1: KEY\n\n{out}/open/a.txt:\n  Line 1: KEY\n\n(2 files "
    )
    assert glob[1] == f"{out}/b.txt\n{out}/open/a.txt\n\n{UNSHOWN}"
    assert listed[1] == f"{out}/\n  b.txt\n  open/\n    a.txt\n{UNSHOWN}"


async def test_consent_to_a_folder_outside_holds_for_what_is_below(world: World, tmp_path: Path) -> None:
    """The user's answer to one call opens the folders in it for that call, but none that a rule denies."""
    out = tmp_path.resolve() / "out"
    (out / "secret").mkdir(parents=True)
    (out / "open").mkdir()
    for name in ("secret/k.txt", "open/a.txt"):
        (out / name).write_text("KEY\n")
    world.settings(permission={"external_directory": {"*": "ask", f"{out}/secret/*": "deny"}})
    glob = Step(Call("glob", {"pattern": "*.txt", "path": str(out)}, id="a"))
    async with world.open(glob, Step(Say("ok")), presence=Attached()) as (hf, _):
        session = await world.session(hf)
        await hf.sessions.prompt(session, "go")
        (request,) = await asked(hf, session)
        await hf.sessions.reply(session, request.id, "once")
        await hf.sessions.wait(session)
        (found,) = outcomes((await hf.sessions.messages(session)).messages)
    assert found == ("completed", f"{out}/open/a.txt\n\n{UNSHOWN}")
