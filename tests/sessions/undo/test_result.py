"""What the session's record holds of a revert."""

from holdfast.sessions.undo import result
from holdfast.sessions.undo.result import UndoneFile


def test_the_record_is_bounded() -> None:
    """In files and in the text of their diffs: it is in every list and event of the session."""
    patch = "x" * 1_000
    files = [
        UndoneFile(path=f"f{number}", outcome="deleted", status="deleted", patch=patch)
        for number in range(10_000)
    ]

    found, diff = result.recorded(files)

    assert [each.path for each in found] == [f"f{number}" for number in range(500)]
    assert [each.patch for each in found] == [patch] * 20 + [""] * 480
    assert diff == "\n".join([patch] * 20)
