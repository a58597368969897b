"""The texts for the model that summarises, and for the model that continues afterwards. Pure."""

from collections.abc import Sequence
from typing import Final

ASK: Final = (
    "Write the summary of the conversation above, by the headings that you were given. It is all that the "
    "agent will remember of these messages: keep exact names, paths, commands, figures and error messages."
)
MERGE: Final = (
    "The earlier summary tells what happened before. Write one summary of both: keep what still matters of "
    "it, correct what has changed, and leave out what is done with."
)
SHORTER: Final = (
    "Your last try was cut off because it was too long, and is not used. Write at most half as much: 1,000 "
    "words or fewer, and end properly."
)
CONTINUE: Final = (
    "The conversation was compacted. Go on with the work where it stood, if there are steps left; if there "
    "is a question that only the person can answer, ask it."
)
TOO_LARGE: Final = (
    "The last request was larger than the model takes, so its attachments were left out. Say so if you need "
    "them."
)


def prompt(
    conversation: str,
    previous: str,
    more: Sequence[str] = (),
    *,
    ask: str | None = None,
    shorter: bool = False,
) -> str:
    """The request to summarise a part of the conversation, with the summary of what came before it.

    `ask` replaces our own instructions, never what is to be summarised. `shorter`: an earlier summary was cut
    off.
    """
    blocks = [f"<conversation>\n{conversation}\n</conversation>"]
    if previous.strip():
        blocks.append(f"<earlier-summary>\n{previous}\n</earlier-summary>\n\n{MERGE}")
    blocks += [text for text in more if text.strip()]
    own = ask if ask is not None and ask.strip() else ASK
    return "\n\n".join([*blocks, own, *([SHORTER] if shorter else [])])
