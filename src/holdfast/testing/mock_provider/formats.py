"""Which format answers which path. A format is a module-level object with the three methods below.

To add a wire: write its module beside `anthropic.py` and give its path here.
"""

from typing import Protocol

from holdfast.testing.mock_provider.anthropic import Messages
from holdfast.testing.mock_provider.gemini import GenerateContent
from holdfast.testing.mock_provider.openai_chat import ChatCompletions
from holdfast.testing.mock_provider.openai_responses import Responses
from holdfast.testing.mock_provider.script import Reply


class Format(Protocol):
    """How one wire encodes answers."""

    def frames(self, reply: Reply, model: str) -> list[bytes]:
        """A good answer, one server-sent event each."""

    def unfinished(self, reply: Reply, model: str) -> list[bytes]:
        """The same without the reason and what follows it."""

    def error(self, kind: str, message: str) -> bytes:
        """The JSON of an error: `rate-limit`, `server-error`, `overloaded`, `overflow` or `auth`."""

    def error_frame(self, message: str) -> bytes:
        """An overload that is reported inside a stream."""


FORMATS: dict[str, Format] = {
    "/messages": Messages(),
    "/chat/completions": ChatCompletions(),
    "/responses": Responses(),
    ":streamGenerateContent": GenerateContent(),
}


def of_path(path: str) -> Format | None:
    """The format of a request's path, whatever comes before it."""
    plain = path.partition("?")[0]
    return next((wire for end, wire in FORMATS.items() if plain.endswith(end)), None)
