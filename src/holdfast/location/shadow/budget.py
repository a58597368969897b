"""Keeps a shadow repository within its budget: the oldest trees and contents go first.

What must stay true: what a staged revert keeps stays; after it the repository is within the budget, or keeps
nothing but that.
"""

from typing import Final

from holdfast.location.shadow import place
from holdfast.location.shadow.repository import Shadow

BUDGET: Final = 2 << 30
"""Bytes, for one worktree."""
ENOUGH: Final = 0.8
"""Pruning goes on until this share of the budget is taken, so that it is not due again at once."""
_SHARE: Final = 4
"""Each round drops one of so many."""


def enforce(shadow: Shadow, budget: int = BUDGET) -> bool:
    """Prune the repository if it takes more than its budget: whether it did."""
    if shadow.size() <= budget:
        return False
    shadow.sweep()  # Packed, it may do.
    while shadow.size() > budget * ENOUGH:
        kept = [each for each in shadow.kept() if place.is_prunable(each.folder)]
        if not kept:
            break
        shadow.drop_oldest(kept[: max(1, len(kept) // _SHARE)])
        shadow.sweep()
    if shadow.size() > budget and not any(shadow.kept()):
        # The files alone, of one moment, are too much.
        shadow.give_up(
            f"the files of {shadow.worktree} take more than the {budget >> 20} MiB that snapshots may take; "
            "no snapshots are taken of them (the setting `snapshot_budget` is in MiB)"
        )
    return True
