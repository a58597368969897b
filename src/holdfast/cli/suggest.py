"""What a user may have meant who typed a command that there is not."""

from collections.abc import Iterable

SAME = {
    "ls": "list",
    "rm": "delete",
    "remove": "delete",
    "auth": "providers",
    "title": "rename",
    "stop": "abort",
}
"""What other tools call it."""
SHOWN_MAX = 3


def suggested(typed: str, here: Iterable[str], elsewhere: Iterable[str]) -> list[str]:
    """The likeliest commands, best first. `elsewhere` are those of other groups, with all of their words."""
    from difflib import get_close_matches

    names, further, word = list(here), list(elsewhere), SAME.get(typed, typed)
    last = {words: words.rpartition(" ")[2] for words in further}
    near = set(get_close_matches(word, last.values(), SHOWN_MAX, 0.75))
    found = [name for name in names if name == word]
    found += get_close_matches(word, names, SHOWN_MAX, 0.6)
    found += [name for name in names if len(word) > 1 and name.startswith(word)]
    found += [words for words in further if last[words] == word]
    found += [words for words in further if last[words] in near]
    return list(dict.fromkeys(found))[:SHOWN_MAX]


def question(found: list[str]) -> str:
    """As the end of a message; empty where nothing comes near."""
    if not found:
        return ""
    *most, last = [f"'{name}'" for name in found]
    return f" Did you mean {', '.join(most)}{' or ' if most else ''}{last}?"
