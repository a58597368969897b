"""A session's short name for users: an adjective and a noun. Nothing makes it unique."""

import os
from collections.abc import Callable

# fmt: off
ADJECTIVES = (
    "brave", "calm", "clever", "cosmic", "crisp", "curious", "eager", "gentle", "glowing", "happy", "hidden",
    "jolly", "kind", "lucky", "mighty", "misty", "neon", "nimble", "playful", "proud", "quick", "quiet",
    "shiny", "silent", "stellar", "sunny", "swift", "tidy", "witty",
)

NOUNS = (
    "cabin", "cactus", "canyon", "circuit", "comet", "eagle", "engine", "falcon", "forest", "garden",
    "harbor", "island", "knight", "lagoon", "meadow", "moon", "mountain", "nebula", "orchid", "otter",
    "panda", "pixel", "planet", "river", "rocket", "sailor", "squid", "star", "tiger", "wizard", "wolf",
)
# fmt: on


def make(random: Callable[[int], bytes] = os.urandom) -> str:
    """A slug; every pair is equally likely."""
    # Eight bytes for 899 pairs: the bias of the remainder is far below anything that could be seen.
    which = int.from_bytes(random(8), "big") % (len(ADJECTIVES) * len(NOUNS))
    return f"{ADJECTIVES[which // len(NOUNS)]}-{NOUNS[which % len(NOUNS)]}"
