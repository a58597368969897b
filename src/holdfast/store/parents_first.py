"""The order in which sessions are made: each parent before its children."""

from collections.abc import Callable, Sequence


def parents_first(
    ids: Sequence[str], parents: Sequence[str | None], circle: Callable[[int], None] = lambda _: None
) -> list[int]:
    """Their places, each parent's before its children's, else in the order given.

    A circle of parents is cut where it was entered; `circle` is called with that place, and may raise.
    """
    place_of = {id: place for place, id in reversed(list(enumerate(ids)))}
    order: dict[int, None] = {}
    for start in range(len(ids)):
        path: dict[int, None] = {}
        place: int | None = start
        while place is not None and place not in order:
            if place in path:
                circle(place)
                break
            path[place] = None
            place = place_of.get(parents[place] or "")
        order.update(dict.fromkeys(reversed(path)))
    return list(order)
