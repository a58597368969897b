"""The tool `bash`, with a real shell."""

import os
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.testing.clock import FakeClock
from holdfast.toolkit.declare import Tool
from holdfast.toolkit.output import ToolDenied, ToolFailure, ToolOutput
from holdfast.tools import managed_output
from holdfast.tools.builtin.bash import bash_tool
from holdfast.tools.managed_output import ManagedOutput
from tests.loop_time import let_pass
from tests.tools.fake_context import Asked
from tests.tools.searching import Project
from tests.until import until

pytestmark = pytest.mark.needs("bash")


class Shell:
    """The tool over a project."""

    def __init__(self, tmp_path: Path) -> None:
        self.project = Project(tmp_path)
        self.managed = ManagedOutput(tmp_path / "tool-output", FakeClock())
        self.tool: Tool = bash_tool(self.project.filesystem, self.managed)

    async def run(self, command: str, **more: Any) -> ToolOutput:
        """What it answers."""
        return await self.project.run(self.tool, command=command, **more)

    async def failure(self, command: str, **more: Any) -> str:
        """Why it fails."""
        return await self.project.failure(self.tool, command=command, **more)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


async def test_a_command_that_cannot_be_run_is_told(shell: Shell) -> None:
    """An empty one, a folder that is none, a folder of Holdfast's own."""
    assert "is empty" in await shell.failure(" \n")
    assert "NUL" in await shell.failure("a\0b")
    assert "There is no folder" in await shell.failure("ls", workdir="none")
    assert "belongs to Holdfast itself" in await shell.failure("cat ../closed/key")
    assert shell.project.context.spawned == []


async def test_denied_is_not_started(shell: Shell) -> None:
    """Neither for the command nor for a folder outside; why it could not be understood is said."""
    for permission in ("bash", "external_directory"):
        shell.project.context.denies = [permission]
        with pytest.raises(ToolDenied) as caught:
            await shell.run("cat ../outside/x; touch made")
        assert "in advance" not in str(caught.value)
        with pytest.raises(ToolDenied) as caught:
            await shell.run('cat "$X"')
        assert '"$X" is known only when it runs. Write it more plainly' in str(caught.value)
    assert shell.project.context.spawned == []


async def test_the_answer(shell: Shell) -> None:
    """Output and errors in their order; an exit code is no failure; the title is the command."""
    output = await shell.run("echo out; echo err >&2; exit 3", description="Say both")
    assert output == ToolOutput(
        text="out\nerr\n\n(Exit code 3.)",
        title="echo out; echo err >&2; exit 3",
        metadata={
            "output": "out\nerr\n",
            "exit": 3,
            "description": "Say both",
            "truncated": False,
            "sandbox": {"level": "none"},
        },
    )


async def test_what_the_box_stopped_and_what_changed_is_said(shell: Shell) -> None:
    """With the way out, where there is one; nothing runs twice."""
    box = shell.project.context.boxed
    box.stops, box.changes = ["a write to /x", "the network"], ["/project/AGENTS.md"]

    output = await shell.run("echo out")
    box.may_leave = False
    other = await shell.run("echo out")

    assert output.text == (
        "out\n\n(The box stopped a write to /x, the network. Nothing was run again. If it is needed, call "
        "`bash` again with `unconfined` and a `reason`; the user is asked.)\n"
        "(Changed, and read by later runs: /project/AGENTS.md.)"
    )
    assert "This agent only reads; say what is missing." in other.text
    assert len(shell.project.context.spawned) == 2


async def test_a_box_that_could_not_be_built_is_a_failure(shell: Shell) -> None:
    """With what the launcher printed."""
    shell.project.context.boxed.failure = "No box."

    with pytest.raises(ToolFailure, match=r"No box\. box: unshare"):
        await shell.run("echo box: unshare")


async def test_outside_the_box_takes_a_reason(shell: Shell) -> None:
    """It reaches whoever decides; without one nothing is asked."""
    with pytest.raises(ToolFailure, match="Say in `reason` why"):
        await shell.run("make", unconfined=True)
    assert shell.project.context.asked == []

    await shell.run("make", unconfined=True, reason="it needs the network")
    await shell.run("make")

    assert shell.project.context.unconfined == ["it needs the network", None]
    assert (await shell.run("true")).text == "(no output)"
    assert (await shell.run("kill -9 $$")).text == "(no output)\n\n(Exit code -9.)"


async def test_what_is_asked(shell: Shell) -> None:
    """First for folders outside, once, then for each simple command."""
    outside = shell.project.outside
    (shell.project.top / "link").symlink_to(outside)
    await shell.run("cat link/x ../outside/y | grep /no/such > /dev/null; git 'status'", description="Look")
    metadata = {"command": "cat link/x ../outside/y | grep /no/such > /dev/null; git 'status'"}
    assert shell.project.context.asked == [
        Asked(
            permission="external_directory",
            patterns=[f"{outside}/*"],
            always=[f"{outside}/*"],
            metadata={**metadata, "description": "Look", "directories": [str(outside)]},
        ),
        Asked(
            permission="bash",
            patterns=["cat link/x ../outside/y", "grep /no/such", "git 'status'"],
            always=["cat *", "grep *"],
            metadata={**metadata, "description": "Look"},
            aliases=["git status"],
        ),
    ]


async def test_what_is_unclear_is_asked_as_such(shell: Shell) -> None:
    """As a whole, with the reason, and for no longer than once."""
    await shell.run('eval "echo hi"')
    (asked,) = shell.project.context.asked
    assert asked == Asked(
        permission="bash",
        patterns=['eval "echo hi"'],
        always=[],
        metadata={"command": 'eval "echo hi"', "description": "", "unclear": "eval is not understood"},
        unclear=["bash", "external_directory"],
    )


async def test_a_sealed_box_asks_for_no_folder(shell: Shell) -> None:
    """Nothing outside can be changed or carried away; a rule that denies still counts."""
    shell.project.context.is_sealed = True
    (shell.project.outside / "y").write_text("hi\n")
    output = await shell.run("cat ../outside/y; eval true")
    assert "hi" in output.text
    assert [(each.permission, each.unclear) for each in shell.project.context.asked] == [("bash", ["bash"])]
    shell.project.context.verdicts = {f"{shell.project.outside}/*": "deny"}
    with pytest.raises(ToolDenied, match="The rules deny external_directory"):
        await shell.run("cat ../outside/y")
    shell.project.context.asked.clear()
    shell.project.context.denies = ("external_directory",)
    with pytest.raises(ToolDenied):
        await shell.run("cat ../outside/y", unconfined=True, reason="x")
    assert [each.permission for each in shell.project.context.asked] == ["external_directory"]


async def test_where_it_runs(shell: Shell) -> None:
    """In the session's folder, or in `workdir`, which is asked for outside; nothing lasts to the next."""
    (shell.project.top / "sub").mkdir()
    assert (await shell.run("cd sub; X=1; pwd")).text == str(shell.project.top / "sub")
    assert (await shell.run("pwd; echo $X", workdir="sub")).text == str(shell.project.top / "sub")
    await shell.run("pwd", workdir=str(shell.project.outside))
    assert [each.patterns for each in shell.project.context.asked if each.permission != "bash"] == [
        [f"{shell.project.outside}/*"]
    ]
    assert (await shell.run('read x; echo "$?"; test -t 1 || echo no')).text == "1\nno"


async def test_after_its_time_it_is_ended_and_the_model_told(shell: Shell) -> None:
    """What it printed until then is kept."""
    outputs: list[ToolOutput] = []

    async def run() -> None:
        outputs.append(await shell.run("echo begun; sleep 300", timeout=30_000))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until(lambda: "begun" in str(shell.project.context.shown))
        let_pass(30)
    (output,) = outputs
    assert output.text == (
        "begun\n\n(The command was ended: it had not finished after 30000 ms. Give it a longer `timeout`, "
        "run it in the background, or do less at once.)"
    )
    assert output.metadata["exit"] is None


async def test_what_it_prints_is_shown_while_it_runs(shell: Shell) -> None:
    """The last characters of it, under the title of the command; a cut is marked."""
    gate = shell.project.top / "gate"
    os.mkfifo(gate)
    answers: list[ToolOutput] = []

    async def run() -> None:
        answers.append(await shell.run("yes x | head -c 200000; cat gate > /dev/null; echo end"))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        shown = shell.project.context.shown
        await until(lambda: bool(shown) and len(str(shown[-1][1]["output"])) == 30_003)
        assert shown[-1][1]["output"] == "..." + "x\n" * 15_000
        await anyio.to_thread.run_sync(gate.write_text, "")
    assert answers[0].text.endswith("x\nend")


async def test_long_output_goes_to_a_file_as_it_comes(shell: Shell) -> None:
    """All of it, private; the model gets its end within the limits, below a line that names the file."""
    output = await shell.run("seq 1 100000")
    (path,) = output.paths
    assert Path(path).read_text() == "".join(f"{number}\n" for number in range(1, 100_001))
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert output.text.startswith("[... 5")
    assert f"bytes before this are left out, and all of it is in {path}: search that file" in output.text
    assert output.text.endswith("\n99999\n100000")
    assert len(output.text.encode()) <= 51_200
    assert output.text.count("\n") < 2_000
    assert output.metadata["truncated"] is True


async def test_one_line_without_an_end(shell: Shell) -> None:
    """It is cut between two characters, and the file is whole."""
    output = await shell.run("printf 'é%.0s' $(seq 1 60000)")
    assert Path(output.paths[0]).stat().st_size == 120_000
    assert set(output.text.split("\n\n", 1)[1]) == {"é"}


async def test_bytes_that_are_no_text(shell: Shell) -> None:
    """They are replaced in what is shown and recorded; nothing fails."""
    output = await shell.run(r"printf 'a\0b\xff\xfec\x01\x1b[1m'; head -c 1000 /dev/urandom")
    assert output.text.startswith("a\ufffdb\ufffd\ufffdc\ufffd\x1b[1m")
    output.text.encode()


async def test_a_file_that_cannot_be_made_costs_the_beginning_only(shell: Shell) -> None:
    """It is said that the rest could not be kept."""
    shell.managed.folder.parent.joinpath("tool-output").write_text("in the way")
    output = await shell.run("seq 1 100000")
    assert (output.paths, output.lossy) == ((), True)
    assert "bytes before this are left out, and could not be kept ...]" in output.text
    assert output.text.endswith("\n100000")


async def test_a_file_has_a_bound(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after it is not kept, and that is said; the end is still shown."""
    monkeypatch.setattr(managed_output, "FILE_BYTES_MAX", 100_000)
    output = await shell.run("seq 1 100000")
    assert Path(output.paths[0]).stat().st_size == 100_000
    assert (output.lossy, "holds only the beginning" in output.text) == (True, True)
    assert output.text.endswith("\n100000")


@pytest.mark.ci
async def test_what_closes_its_output_is_waited_for(shell: Shell) -> None:
    """The end of the output is not the end of the command."""
    output = await shell.run("echo a; exec >&- 2>&-; sleep 0.3; touch done")
    assert output.text == "a"
    assert (shell.project.top / "done").exists()


@pytest.mark.ci
async def test_what_holds_the_output_open_is_not_waited_for(shell: Shell) -> None:
    """A process in the background does not keep the call, and the model is told that it was ended."""
    output = await shell.run("sleep 300 & echo a")
    assert output.text == "a\n\n(A process that it left behind was ended with it.)"


@pytest.mark.long
async def test_a_hundred_megabytes(shell: Shell) -> None:
    """They go to the file; memory stays small."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    output = await shell.run("head -c 100000000 /dev/zero | tr '\\0' x")
    assert Path(output.paths[0]).stat().st_size == 100_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000
