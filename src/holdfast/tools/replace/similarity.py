"""How alike two lines are."""

CHARS_MAX = 1_000
"""Longer lines are compared by their beginning: the effort grows with the square."""


def similarity(one: str, other: str) -> float:
    """From 0 to 1: the share of characters that need no edit (Levenshtein)."""
    one, other = one[:CHARS_MAX], other[:CHARS_MAX]
    if one == other:
        return 1.0
    longest = max(len(one), len(other))
    return 1.0 - _distance(one, other) / longest


def _distance(one: str, other: str) -> int:
    """How many characters have to be put in, taken out or exchanged."""
    # What is equal at both ends costs nothing.
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    one, other = one[start : len(one) - end], other[start : len(other) - end]
    if not one or not other:
        return len(one) + len(other)
    before = list(range(len(other) + 1))
    for row, left in enumerate(one, 1):
        now = [row]
        for column, right in enumerate(other, 1):
            put, taken = now[column - 1] + 1, before[column] + 1
            changed = before[column - 1] + (left != right)
            now.append(min(put, taken, changed))
        before = now
    return before[-1]
