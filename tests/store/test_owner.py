"""Who counts as silent, by two clocks."""

from holdfast.store.owner import LEASE_MS, RENEW_MS, Sightings

DAY_MS = 86_400_000


def test_one_who_stands_still_is_silent_after_an_interval_if_it_is_late() -> None:
    """A newcomer needs no more than one interval for an owner whose deadline has passed."""
    seen = Sightings()
    seen.note({"dead": 900, "alive": 9_000}, store_ms=1_000, boot_ms=0)
    assert seen.silent(store_ms=1_000, boot_ms=0) == {}

    seen.note({"dead": 900, "alive": 9_000}, store_ms=1_000 + RENEW_MS, boot_ms=RENEW_MS)
    assert seen.silent(store_ms=1_000 + RENEW_MS, boot_ms=RENEW_MS) == {"dead": 900}


def test_after_a_step_of_the_clock_only_a_whole_lease_counts() -> None:
    """Forward: who looks late has a lease by our own clock. Back: who never looks late is found too."""
    for step_ms in (DAY_MS, -DAY_MS):
        seen = Sightings()
        seen.note({"dead": 14_000}, store_ms=0, boot_ms=0)
        for boot_ms in range(RENEW_MS, LEASE_MS + 1, RENEW_MS):
            seen.note({"dead": 14_000}, store_ms=boot_ms + step_ms, boot_ms=boot_ms)
            assert seen.silent(store_ms=boot_ms + step_ms, boot_ms=boot_ms) == {}
        assert seen.silent(store_ms=LEASE_MS + 1 + step_ms, boot_ms=LEASE_MS + 1) == {"dead": 14_000}


def test_a_deadline_that_moves_is_life() -> None:
    """However late it looks."""
    seen = Sightings()
    for round_ in range(20):
        now_ms = round_ * RENEW_MS
        seen.note({"alive": round_}, store_ms=now_ms, boot_ms=now_ms)
        assert seen.silent(store_ms=now_ms, boot_ms=now_ms) == {}
