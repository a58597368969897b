"""A world for stories: a person's settings, a project, a store and a scripted model."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import holdfast
from holdfast.app import Holdfast
from holdfast.schema.message import MessageWithParts
from holdfast.schema.session import Session
from holdfast.testing.scripted_provider import ScriptedProvider, Step

MODEL = "scripted/m"


class Attached:
    """A person sees every question."""

    def attached(self, session: Session) -> bool:
        return True


class World:
    """Everything around a session, on a temporary disk."""

    def __init__(self, tmp_path: Path, home: Path) -> None:
        self.project = tmp_path / "project"
        self.project.mkdir(exist_ok=True)
        self.store = f"sqlite://{tmp_path}/store.db"
        self.home = home
        self.settings()

    def settings(self, **more: Any) -> None:
        """The person's own settings: one provider with one model, and what a story adds."""
        folder = self.home / ".config" / "holdfast"
        folder.mkdir(parents=True, exist_ok=True)
        model = {
            "name": "M",
            "limit": {"context": 100_000, "output": 8_000},
            "cost": {"input": 1, "output": 2},
        }
        entry = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "http://127.0.0.1:9/v1"},
            "models": {"m": model},
        }
        (folder / "holdfast.json").write_text(
            # Snapshots take time: the stories that are about them switch them on.
            json.dumps({"model": MODEL, "provider": {"scripted": entry}, "snapshot": False, **more})
        )

    @asynccontextmanager
    async def open(self, *steps: Step, **options: Any) -> AsyncIterator[tuple[Holdfast, ScriptedProvider]]:
        """The runtime with a script; whatever differs from it is an error at the end."""
        with ScriptedProvider(*steps) as script:
            async with holdfast.open(self.store, provider=script, **options) as hf:
                yield hf, script

    async def session(self, hf: Holdfast, **fields: Any) -> str:
        """A session in the project."""
        return (await hf.sessions.create(directory=self.project, title="A story", **fields)).id


async def is_shown(hf: Holdfast, session: str, text: str = "", *, count: int = 0) -> bool:
    """Whether a session has so many messages by now, and this text in one of them."""
    messages = (await hf.sessions.messages(session)).messages
    return len(messages) >= count and text in str(messages)


def shape(messages: tuple[MessageWithParts, ...]) -> list[Any]:
    """Messages in short: who speaks, and what the parts are, by kind and text."""
    return [
        (message.info.__struct_config__.tag, [_part(part) for part in message.parts]) for message in messages
    ]


def _part(part: Any) -> Any:
    tag = part.__struct_config__.tag
    if tag in ("text", "reasoning"):
        return (tag, part.text)
    if tag == "tool":
        state = part.state
        said = getattr(state, "output", None) or getattr(state, "error", None)
        return (tag, part.tool, state.__struct_config__.tag, said)
    if tag == "step-finish":
        return (tag, part.reason)
    return tag
