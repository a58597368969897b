"""What stands in a message of which a wire can carry nothing.

Such a message is not left out: then its neighbours would be joined, and a request would no longer extend the
one before it; or the model would speak first, or twice. A wire refuses the empty and the blank, so words must
stand there. They are in brackets, like everything that nobody said.
"""

from typing import Final

NO_ANSWER: Final = "[No answer]"
"""The model's message."""

NO_WORDS: Final = "[Empty message]"
"""The person's message."""
