"""How alike two lines are."""

CHARS_MAX = 1_000
"""Longer lines are compared by their beginning."""


def similarity(one: str, other: str) -> float:
    """From 0 to 1: the share of characters that need no edit (Levenshtein)."""
    one, other = one[:CHARS_MAX], other[:CHARS_MAX]
    if one == other:
        return 1.0
    longest = max(len(one), len(other))
    return 1.0 - _distance(one, other) / longest


def _distance(one: str, other: str) -> int:
    """How many characters have to be put in, taken out or exchanged.

    Column by column of the usual table, a column in two numbers: a bit says for each row whether the count
    is by one more, or by one less, than in the row above (Myers, in Hyyrö's form). So a column costs a few
    operations, however many rows it has.
    """
    if not one or not other:
        return len(one) + len(other)
    places: dict[str, int] = {}
    for row, char in enumerate(one):
        places[char] = places.get(char, 0) | 1 << row
    whole, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    more, less, found = whole, 0, len(one)
    for char in other:
        equal = places.get(char, 0)
        kept = (((equal & more) + more) ^ more) | equal | less
        rises, falls = less | (whole & ~(kept | more)), more & kept
        if rises & last:
            found += 1
        elif falls & last:
            found -= 1
        # The first row of the table counts one more in each column.
        rises, falls = (rises << 1) | 1, falls << 1
        more, less = (falls | ~(kept | rises)) & whole, rises & kept & whole
    return found
