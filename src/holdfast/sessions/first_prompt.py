"""The first prompt of a session that was made for it."""

from collections.abc import Sequence

from holdfast.errors import HoldfastError
from holdfast.schema.message import MessageWithParts
from holdfast.schema.prompt import PartInput
from holdfast.sessions.options import PromptOptions
from holdfast.sessions.service import SessionService

TITLE_CHARS = 60


async def process_first(
    sessions: SessionService,
    session: str,
    input: str | Sequence[PartInput],
    options: PromptOptions,
    *,
    check: bool,
) -> MessageWithParts:
    """Prompt a new session and wait for the answer; if the prompt is refused, the session is removed.

    It would be empty, and no caller knows its id.
    """
    chosen = {name: getattr(options, name) for name in options.__struct_fields__}
    try:
        admitted = await sessions.prompt(session, input, resume=False, **chosen)
    except HoldfastError:
        await sessions.remove(session)
        raise
    chosen["id"] = admitted.prompt.id
    return await sessions.process(session, input, check=check, **chosen)


def first_text(input: str | Sequence[PartInput]) -> str:
    """The beginning of the first text of a prompt, for a title."""
    if isinstance(input, str):
        return input[:TITLE_CHARS]
    texts = (text for part in input if isinstance(text := getattr(part, "text", None), str))
    return next(texts, "")[:TITLE_CHARS]
