"""Shows a running session in a terminal: text as it comes, a line for each call, errors by name.

What must stay true: every word of the model is printed once, whether it came live or with its record; nothing
that the model or a tool wrote can steer the terminal.
"""

import sys
import time
from contextlib import suppress
from typing import Any

import click

from holdfast.cli import message_lines
from holdfast.cli.complaint import Complaint
from holdfast.cli.output import clean
from holdfast.feed.frame import Frame
from holdfast.schema.part import TextPart


class Printer:
    """Prints the frames of one session, and remembers how it ended."""

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        self.error: Complaint | None = None
        self.denied = False
        self.has_shown = False
        """Whether an answer was worked on."""
        self.cut_off: str | None = None
        """Set where the answer ended at the output limit."""
        self._last: dict[str, Any] = {}
        self._steps: dict[str, dict[str, Any]] = {}
        self._answers: set[str] = set()
        self._printed: dict[str, int] = {}
        self._fresh_line = True

    def take_up(self, part: TextPart, *, show: bool) -> None:
        """A text that was begun before; what comes is its continuation."""
        self._answers.add(part.message_id)
        self._printed[part.id] = 0 if show else len(part.text)
        self._grow(part.id, 0, part.text)

    def print_frame(self, frame: Frame) -> None:
        """Print a frame, if it is for users."""
        value = frame.value()
        match frame.type:
            case "message.updated":
                self._message(value["info"])
            case "message.part.delta":
                self._delta(value)
            case "message.part.updated":
                self._part(value["part"])
            case "session.status" if value["status"]["type"] == "retry":
                self._retry(value["status"])
            case "permission.asked":
                self._line(f"? {value['permission']}: {', '.join(value['patterns'])}")
            case _:
                pass

    def _message(self, info: dict[str, Any]) -> None:
        if info["role"] != "assistant":
            return
        self.has_shown = True
        self._answers.add(info["id"])
        self._last = info
        if (error := info.get("error")) is not None:
            data = error.get("data") or {}
            self.error = Complaint(error["name"], clean(str(data.get("message") or error["name"])))
        elif (info.get("time") or {}).get("completed") is not None and not info.get("summary"):
            self.error = None  # What went wrong before was got over.

    def _delta(self, value: dict[str, Any]) -> None:
        if (
            value["messageID"] in self._answers
            and value["field"] == "text"
            and value["partID"] in self._printed
        ):
            self._grow(value["partID"], value["offset"], value["delta"])

    def _part(self, part: dict[str, Any]) -> None:
        if part["messageID"] not in self._answers:
            return
        match part["type"]:
            case "text":
                self._printed.setdefault(part["id"], 0)
                self._grow(part["id"], 0, part["text"])
                if (part.get("time") or {}).get("end") is not None and part["text"]:
                    self._end_line()
            case "tool":
                self._tool(part)
            case "step-finish":
                self._steps[part["id"]] = part
            case _:
                pass

    def close(self) -> None:
        """Print whether the answer is whole, and for users who answered and what it took."""
        steps = list(self._steps.values())
        if (
            self._last
            and sys.stderr.isatty()
            and (line := message_lines.usage(self._last, steps)) is not None
        ):
            self._line(line)
        if self._last.get("finish") == message_lines.LENGTH and self.error is None:
            own = [step for step in steps if step["messageID"] == self._last["id"]]
            self.cut_off = message_lines.cut_off(message_lines.output_tokens(self._last, own))

    def _grow(self, part: str, offset: int, text: str) -> None:
        known = self._printed[part]
        fresh = text[known - offset :] if offset <= known else ""
        if fresh:
            self._printed[part] = offset + len(text)
            shown = "\n".join(clean(line) for line in fresh.split("\n"))
            if not self._silent:
                click.echo(shown, nl=False)
                sys.stdout.flush()
            self._fresh_line = shown.endswith("\n")

    def _tool(self, part: dict[str, Any]) -> None:
        state = part["state"]
        if state["status"] not in ("completed", "error") or part["id"] in self._printed:
            return
        self._printed[part["id"]] = 0
        if state["status"] == "completed":
            self._line(f"• {part['tool']} {state['title']}")
            return
        outcome = (state.get("metadata") or {}).get("outcome", "failed")
        self.denied = self.denied or outcome == "denied"
        self._line(f"✗ {part['tool']} {outcome}: {state['error'].splitlines()[0] if state['error'] else ''}")

    def _retry(self, status: dict[str, Any]) -> None:
        seconds = max(0, round(status["next"] / 1000 - time.time()))
        self._line(f"… {status['message']}; asking again in {seconds} s (attempt {status['attempt']})")

    def _line(self, text: str) -> None:
        self._end_line()
        if not self._silent:
            with suppress(OSError):  # The answer is what counts; this stands beside it.
                click.echo(click.style(clean(text), dim=True), err=True)

    def _end_line(self) -> None:
        if not self._fresh_line and not self._silent:
            click.echo()
        self._fresh_line = True
