"""Show Holdfast at work on a temporary data directory: a session's life, a kill, a fork, an export."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import holdfast
from holdfast.app import Holdfast
from holdfast.feed.tail import BEGINNING
from holdfast.schema.message import UserMessage
from holdfast.schema.model import ModelRef
from holdfast.schema.part import TextPart
from holdfast.schema.times import Created

COMMAND = str(Path(sys.executable).with_name("holdfast"))


def say(text: str) -> None:
    """What happens now."""
    print(f"\n\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def run(*arguments: str) -> str:
    """A command as a person would type it."""
    print(f"$ holdfast {' '.join(arguments)}", flush=True)
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=True)
    shown = done.stdout if len(done.stdout) < 2000 else f"{done.stdout[:200]}…\n"
    print(shown + done.stderr, end="", flush=True)
    return done.stdout


async def ask(hf: Holdfast, session: str, words: str) -> str:
    """Store a person's message, as the engine will."""
    message = UserMessage(
        id=await hf.sessions.new_id(session, "msg"),
        session_id=session,
        time=Created(created=hf.clock.now_ms()),
        agent="build",
        model=ModelRef(provider_id="demo", model_id="demo"),
    )
    await hf.sessions.update_message(message)
    part = TextPart(
        id=await hf.sessions.new_id(session, "prt"), session_id=session, message_id=message.id, text=words
    )
    await hf.sessions.update_part(part)
    return message.id


async def first(store: str) -> str:
    """A session is made and filled while somebody follows it."""
    async with holdfast.open(store) as hf:
        session = await hf.sessions.create(title="Fix the failing test")
        for words in ("Why does test_parse fail?", "Please fix it.", "And add a test for the empty file."):
            await ask(hf, session.id, words)
        print("What a follower hears, from the beginning:")
        heard = 0
        async for frames in hf.feed.follow(BEGINNING, session=session.id):
            for frame in frames:
                print(f"  {frame.type:<24} {frame.value().get('part', {}).get('text', '')}")
            heard += len(frames)
            if heard >= 7:
                break
        return session.id


async def write_for_ever(store: str, session: str) -> None:
    """Write until somebody kills us, and say what was acknowledged."""
    async with holdfast.open(store) as hf:
        for n in range(1_000_000):
            message = await ask(hf, session, f"acknowledged {n}")
            os.write(1, f"{message}\n".encode())


async def count(store: str, session: str, acknowledged: list[str]) -> tuple[int, int]:
    """How many of the acknowledged messages are there."""
    async with holdfast.open(store) as hf:
        found = {message.info.id for message in (await hf.sessions.messages(session)).messages}
        return len(acknowledged), len([id for id in acknowledged if id in found])


def main() -> None:
    """The tour."""
    place = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    store = f"sqlite://{place}/holdfast.db"
    os.environ["HOLDFAST_STORE"] = store
    began = time.monotonic()
    try:
        say("1. A session is created and filled; a client follows it.")
        session = asyncio.run(first(store))

        say("2. A writer is killed with SIGKILL in the middle of its work.")
        writer = subprocess.Popen(
            [sys.executable, __file__, "--writer", store, session], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline().strip()]
        time.sleep(0.5)
        writer.kill()
        acknowledged += writer.communicate()[0].split("\n")[:-1]
        said, kept = asyncio.run(count(store, session, acknowledged))
        print(f"It had acknowledged {said} messages; {kept} of them are in the store.")
        assert said == kept, "this must never happen"
        run("doctor")

        say("3. List, search, fork, archive.")
        run("session", "list")
        run("session", "search", "empty", "file")
        run("session", "fork", session)
        run("session", "archive", session)
        run("session", "list")

        say("4. Export, and import into a store that is a plain tree of JSON files.")
        run("session", "export", session, "--output", str(place / "session.json"))
        run("--store", f"file://{place}/tree", "session", "import", str(place / "session.json"))
        there = json.loads(
            run("--store", f"file://{place}/tree", "session", "show", session, "--format", "json")
        )
        print(f"The tree holds {sum(1 for _ in (place / 'tree').rglob('*.json'))} files.")
        assert there["info"]["title"] == "Fix the failing test"

        say("5. Delete.")
        run("session", "delete", session, "--yes")
        run("session", "list", "--all", "--archived")
        say(f"Done in {time.monotonic() - began:.1f} s; everything was in {place} and is gone now.")
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--writer"]:
        asyncio.run(write_for_ever(sys.argv[2], sys.argv[3]))
    else:
        main()
