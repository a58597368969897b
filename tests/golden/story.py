"""The long story: a piece of work of some forty turns, with all that may happen to a session in between.

Two readers: the golden requests beside this file, and `bench/cache.py`. Whoever adds a turn says with it
whether the request may differ from the one before it, and why.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import anyio

from holdfast.errors import ProviderError
from holdfast.schema.message import UserMessage
from holdfast.schema.output_format import JsonSchemaFormat
from holdfast.testing.mock_provider.script import Call, Say, Usage
from holdfast.testing.scripted_provider import Fail, Step, Wait
from tests.golden.props import check_tool, find_tool, measure_tool, thought
from tests.golden.stage import HAIKU, Gate, Stage

AGENTS = {"quick": {"mode": "primary", "description": "Answers in two steps.", "steps": 2}}
FORM = JsonSchemaFormat(
    schema={"type": "object", "properties": {"parts": {"type": "integer"}}, "required": ["parts"]}
)
PAUSE_MS = 360_000
FULL = Usage(input=195_000, output=100)
"""So much that the next request needs a compaction before it."""


def say(text: str, usage: Usage | None = None) -> Step:
    """An answer of some length."""
    return Step(Say(f"{text} {'I looked at what there is and kept to the plan. ' * 4}".strip()), usage=usage)


def calls(*wanted: tuple[str, str], begin: int) -> Step:
    """Some words and some calls, with ids that go on from a number."""
    names = {"read": "filePath", "find": "words", "check": "part", "measure": "what"}
    made = [
        Call(name, {names.get(name, "x"): value}, id=f"call_{begin + number}")
        for number, (name, value) in enumerate(wanted)
    ]
    return Step(Say("Let me look."), *made)


async def play(place: Path, stage: Stage | None = None) -> Stage:
    """Play the whole story; `HOME` must be `place / "home"`."""
    stage = stage or Stage(place)
    _furnish(stage)
    async with stage.open(find_tool(), check_tool()):
        main = await stage.session("main")
        await _tools(stage, main)
        await _instructions(stage, main)
        await _trouble(stage, main)
    # The tools come up in another order, and one describes itself better.
    async with stage.open(check_tool(), find_tool("Find words in the project, with file and line.")):
        await _restarted(stage, main)
        await _switches(stage, main)
        await _interrupted(stage, main)
        await _forks(stage, main)
        await _compacted(stage, main)
    stage.settings(agent={**AGENTS, "build": {"prompt": "Keep answers under a page."}})
    async with stage.open(find_tool(), check_tool(), measure_tool()):
        await _edited_agent(stage, main)
    return stage


def _furnish(stage: Stage) -> None:
    stage.settings(agent=AGENTS)
    project = stage.world.project
    stage.rules.write_text(
        "# Rules\n" + "".join(f"{n}. Settle part {n} before the next.\n" for n in range(1, 9))
    )
    (project / "README.md").write_text("A project about parts.\n" * 10)
    for name in ("one", "two", "three"):
        (project / f"{name}.py").write_text("".join(f"{name}_{n} = {n}\n" for n in range(60)))
    (project / "inner").mkdir()
    (project / "inner" / "AGENTS.md").write_text("Parts in here are settled last.\n")
    (project / "inner" / "notes.txt").write_text("Notes on the inner parts.\n" * 5)


async def _tools(on: Stage, main: str) -> None:
    await on.turn(main, "the first words", "Where should we begin?", say("With the parts."))
    await on.turn(
        main, "a file is read", "Read the README.", calls(("read", "README.md"), begin=1), say("It is short.")
    )
    three = calls(("read", "one.py"), ("read", "two.py"), ("read", "three.py"), begin=2)
    await on.turn(main, "three files at once", "Now read the parts.", three, say("Three parts."))
    many = calls(*(("find", f"word{n}") for n in range(24)), begin=5)
    await on.turn(main, "more blocks than anybody looks back", "Find every use.", many, say("Found them."))
    await on.turn(main, "only words", "What did you find?", say("Each part is used twice."))
    steps = [calls(("check", f"part{n}"), begin=29 + n) for n in range(6)]
    await on.turn(main, "six steps in a row", "Check the parts one by one.", *steps, say("All pass."))
    thinking = Step(
        thought("Which of them is slow?"), Say("Let me see."), *calls(("find", "slow"), begin=35).items[1:]
    )
    await on.turn(main, "the model thinks", "Which part is slow?", thinking, say("The second."))
    await on.turn(main, "thoughts stay", "Are you sure?", Step(thought("I am."), Say("Yes.")))


async def _instructions(on: Stage, main: str) -> None:
    on.rules.write_text("# Rules\nSettle the second part first.\n")
    await on.turn(main, "AGENTS.md was edited", "The rules are new.", say("I follow them."))
    await on.turn(main, "and is not told twice", "Go on.", say("The second part comes first."))
    nested = calls(("read", "inner/notes.txt"), begin=36)
    await on.turn(
        main, "an inner AGENTS.md is met", "Look inside.", nested, say("The inner parts come last.")
    )
    on.wall.days += 1
    await on.turn(main, "the date changes", "Good morning.", say("Good morning."))
    on.rules.unlink()
    on.wall.days += 1
    two = calls(("find", "settled"), begin=37)
    await on.turn(main, "AGENTS.md is removed, another day", "No rules today.", two, say("Understood."))
    await on.turn(main, "only words again", "What is left?", say("The third part."))


async def _trouble(on: Stage, main: str) -> None:
    odd = calls(("check", "nothing"), ("paint", "it red"), begin=40)
    await on.turn(main, "calls that fail", "Check nothing.", odd, say("That did not work."))
    refused = Step(Fail(ProviderError("no credit", kind="quota")))
    await on.turn(main, "the provider refuses", "Settle the third part.", refused)
    await on.turn(main, "and is asked again", "Try again.", say("Settled."))
    await on.hf.sessions.prompt(main, "By the way: the inner parts are done.", no_reply=True)
    await on.turn(main, "something was said in passing", "What is left now?", say("Nothing inside."))
    broken = Step(Say("The answer begins"), Fail(ProviderError("gone", kind="connection", retryable=True)))
    await on.turn(main, "the stream breaks off", "Sum it up.", broken, say("as I said: all parts work."))
    last = [calls(("find", "last"), begin=42), say("No more steps.")]
    await on.turn(main, "an agent with few steps", "Quickly now.", *last, agent="quick")
    await on.turn(main, "back from it", "Thank you.", say("With pleasure."), agent="build")


async def _restarted(on: Stage, main: str) -> None:
    await on.turn(main, "after a restart", "Are you still there?", say("Yes, with all I knew."))
    again = calls(("read", "one.py"), ("find", "again"), begin=50)
    await on.turn(main, "tools after a restart", "Read the first part again.", again, say("As before."))
    await on.turn(main, "after a long pause", "I had lunch.", say("Welcome back."), after_ms=PAUSE_MS)


async def _switches(on: Stage, main: str) -> None:
    plan = calls(("find", "plan"), begin=53)
    await on.turn(main, "another agent", "Plan it.", plan, say("The plan."), agent="plan", moved="agent")
    await on.turn(main, "the same agent", "Better.", say("A better plan."), agent="plan")
    await on.turn(main, "the first agent", "Do it.", say("Done."), agent="build", moved="agent")
    await on.turn(main, "another model", "Check it.", say("Good."), model=HAIKU, moved="model")
    look = calls(("check", "parts"), begin=54)
    await on.turn(main, "the same model", "Check it all.", look, say("All good."), model=HAIKU)
    await on.turn(main, "the first model", "And you?", say("Good."), model=on.model, moved="model")
    on.register(measure_tool())
    took = calls(("measure", "two"), begin=55)
    await on.turn(main, "a tool arrives", "Measure it.", took, say("It is fast."), moved="tools")
    shaped = Step(Call("StructuredOutput", {"parts": 3}, id="call_56"))
    await on.turn(main, "an answer in a form", "How many?", shaped, format=FORM, moved="output format")
    await on.turn(main, "words again", "Thanks.", say("Gladly."), moved="output format")


async def _interrupted(on: Stage, main: str) -> None:
    gate = Gate()
    on.begin("the person interrupts")
    on.script.add(Step(Say("This will be a long answer"), Wait(cast("anyio.Event", gate))))
    await on.hf.sessions.prompt(main, "Tell me everything.")
    with anyio.fail_after(60):
        await gate.reached.wait()
    await on.hf.sessions.interrupt(main)
    await on.turn(main, "and goes on", "Shorter, please.", say("All is well."))


async def _forks(on: Stage, main: str) -> None:
    whole = await on.fork(main, "fork")
    await on.turn(whole, "a fork of everything", "In another way.", say("Another way."))
    await on.turn(main, "the source goes on", "In the old way.", say("The old way."))
    cut, after = await _newest(on, main), on.seen[-1].before
    looked = calls(("find", "other"), begin=60)
    await on.turn(whole, "the fork goes on", "Find the other.", looked, say("Found."))
    early = await on.fork(main, "early fork", cut=cut, after=after)
    await on.turn(early, "a fork before the last prompt", "In a third way.", say("A third way."))
    await on.turn(main, "the source goes on after it", "Go on.", say("Going on."))


async def _newest(on: Stage, session: str) -> str:
    """The last prompt of a session."""
    page = await on.hf.sessions.messages(session)
    return next(each.info.id for each in reversed(page.messages) if isinstance(each.info, UserMessage))


async def _compacted(on: Stage, main: str) -> None:
    on.begin("compaction by hand")
    on.script.add(Step(Say(f"## Goal\n{'Settle every part. ' * 20}")))
    assert await on.hf.sessions.compact(main, force=True) == "admitted"
    await on.hf.sessions.wait(main)
    await on.turn(main, "after it", "What was the goal?", say("To settle parts."), begins="compaction")
    look = [calls(("check", f"late{n}"), begin=61 + n) for n in range(3)]
    await on.turn(main, "tools after it", "Check it once more.", *look, say("Fine.", usage=FULL))
    written = Step(Say(f"## Goal\n{'All parts are settled. ' * 20}"))
    await on.turn(
        main, "too full: it compacts by itself", "Next.", written, say("Next."), begins="compaction"
    )
    await on.turn(main, "and goes on", "Good.", say("Good."))


async def _edited_agent(on: Stage, main: str) -> None:
    await on.turn(main, "a restart with an edited agent", "Again.", say("Again."), moved="agent")
    last = calls(("measure", "all"), begin=70)
    await on.turn(main, "the end", "One last look.", last, say("It is done."))


def turns(stage: Stage) -> Sequence[str]:
    """What happened, turn by turn."""
    return list({each.turn: each.note for each in stage.seen}.values())
