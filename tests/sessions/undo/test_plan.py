"""What undoing changes makes of each file: a table, a row a fact."""

from typing import Any

import pytest

from holdfast.location.shadow.objects import content_id
from holdfast.schema.file_change import FileChange
from holdfast.sessions.undo.plan import MISSING, Held, Merged, Planned, plan

A, B, C, D, X = (f"{letter}\n".encode() for letter in "abcdx")
KEPT = {content_id(each): each for each in (A, B, C, D, X)}
MERGED = {(B, X, A): b"merged\n"}


def change(before: bytes | None, after: bytes | None, path: str = "/p", **more: Any) -> FileChange:
    """A change whose contents are kept."""
    ids = [None if each is None else content_id(each) for each in (before, after)]
    return FileChange(path=path, before=ids[0], after=ids[1], **more)


def merge(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    data = MERGED.get((base, ours, theirs))
    return Merged(data) if data else Merged(reason="the same lines", lines=((1, 1),))


def undone(changes: list[FileChange], now: Held, **more: Any) -> Planned:
    """What becomes of the one file."""
    (found,) = plan(changes, {"/p": now}, KEPT.get, merge, **more)
    return found


@pytest.mark.parametrize(
    ("changes", "now", "outcome", "then"),
    [
        ([change(A, B)], B, "restored", A),
        ([change(A, B)], A, "unchanged", A),
        ([change(A, B), change(B, C)], C, "restored", A),
        ([change(None, B)], B, "deleted", None),
        ([change(None, B)], None, "unchanged", None),
        ([change(None, B), change(B, C)], C, "deleted", None),
        ([change(A, None)], None, "restored", A),
        ([change(A, None)], A, "unchanged", A),
        ([change(A, B)], X, "merged", b"merged\n"),
        # The user wrote C between two changes of the agent.
        ([change(A, B), change(X, D)], D, "merged", b"merged\n"),
        # Made, deleted by the user, made again.
        ([change(None, B), change(None, C)], C, "deleted", None),
        ([change(A, B), change(B, A)], X, None, None),
    ],
)
def test_what_a_file_becomes(
    changes: list[FileChange], now: bytes | None, outcome: str | None, then: bytes | None
) -> None:
    """From the last change to the first; what the agent itself took back is no change at all."""
    found = plan(changes, {"/p": Held(now)}, KEPT.get, merge)
    assert [(each.outcome, each.then.data) for each in found] == ([(outcome, then)] if outcome else [])


@pytest.mark.parametrize(
    ("changes", "now", "reason", "lines"),
    [
        ([change(A, B)], Held(C), "the same lines", ((1, 1),)),
        ([change(None, B)], Held(X), "the agent made it, and it has been changed since", ()),
        ([change(A, None)], Held(X), "the agent deleted it, and it has been made anew since", ()),
        ([change(A, B)], Held(obstacle="it is a link by now"), "it is a link by now", ()),
        # The last is undone, the one before is not: all of the file stays.
        ([change(A, B), change(C, D)], Held(D), "the same lines", ((1, 1),)),
    ],
)
def test_conflicts_leave_the_file(
    changes: list[FileChange], now: Held, reason: str, lines: tuple[tuple[int, int], ...]
) -> None:
    """What the user wrote is neither overwritten nor deleted, and the reason is named."""
    assert undone(changes, now) == Planned(
        path="/p", outcome="conflict", now=now, then=now, reason=reason, lines=lines
    )


@pytest.mark.parametrize(
    ("changes", "now", "reason"),
    [
        ([change(A, B, covered=False)], B, "what it held before could not be kept"),
        ([change(A, B, covered=False), change(B, C)], C, "what it held before could not be kept"),
        ([change(b"gone", B)], B, "what it held before is no longer kept"),
        ([change(A, b"gone")], X, "it has been changed since, and what the agent left is no longer kept"),
        ([change(A, B, after_mode=0o120000)], B, "it is, or was, a link, which is never written"),
    ],
)
def test_what_is_not_covered_stays(changes: list[FileChange], now: bytes, reason: str) -> None:
    """And says why."""
    assert undone(changes, Held(now)) == Planned(
        path="/p", outcome="not covered", now=Held(now), then=Held(now), reason=reason
    )


def test_closed_paths_stay() -> None:
    """Whatever they hold."""
    found = undone([change(A, B)], Held(B), closed={"/p": "it lies outside"})
    assert (found.outcome, found.reason, found.is_written) == ("not covered", "it lies outside", False)


def test_a_file_that_was_deleted_since_stays_so() -> None:
    """It is no conflict: nothing of the user's is lost."""
    found = undone([change(A, B)], MISSING)
    assert (found.outcome, found.then, found.reason) == (
        "unchanged", MISSING, "it was deleted since, and stays so",
    )  # fmt: skip


def test_what_was_observed_is_marked() -> None:
    """Also if only one of the changes was."""
    assert [each.observed for each in (
        undone([change(A, B, observed=True)], Held(B)),
        undone([change(A, B), change(B, C, observed=True)], Held(C)),
        undone([change(A, B)], Held(B)),
    )] == [True, True, False]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "now", "observed", "then"),
    [
        (0o644, 0o755, 0o755, False, 0o644),
        (0o644, 0o755, 0o700, False, 0o700),  # The user's own.
        (0o644, 0o644, 0o600, False, 0o600),
        (None, None, 0o600, False, 0o600),
        (0o100644, 0o100755, 0o775, True, 0o664),
        (0o100755, 0o100644, 0o664, True, 0o775),
        (0o100755, 0o100644, 0o600, True, 0o700),
        (0o100644, 0o100755, 0o600, True, 0o600),
        (0o100644, 0o100644, 0o600, True, 0o600),
    ],
)
def test_modes(before: int | None, after: int | None, now: int, observed: bool, then: int) -> None:
    """The agent's change of it is undone, the user's stays; of what was observed only the executable bits."""
    found = undone([change(A, B, before_mode=before, after_mode=after, observed=observed)], Held(B, now))
    assert (found.outcome, found.then) == ("restored", Held(A, then))


def test_a_mode_alone() -> None:
    """A change of nothing else is undone, and a file that comes back has the mode that it had."""
    assert undone([change(A, A, before_mode=0o644, after_mode=0o755)], Held(A, 0o755)) == Planned(
        path="/p", outcome="restored", now=Held(A, 0o755), then=Held(A, 0o644)
    )
    assert undone([change(A, None, before_mode=0o755)], MISSING).then == Held(A, 0o755)
