"""Ids: their shape, their order while it lasts, and what becomes of it at the wrap."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import InvalidInput
from holdfast.schema import ids
from holdfast.schema.ids import Mint
from tests.schema.fake_clock import FakeClock

WRAP_MS = 1_786_706_395_136
TEN_YEARS_MS = 315_576_000_000
ZEROS = "00000000000000"


def zeros(count: int) -> bytes:
    return bytes(count)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("ses_1", "ID ses_1 does not start with msg"),
        ("", "ID  does not start with msg"),
        ("msg", "ID msg does not start with msg_"),
        ("msgone", "ID msgone does not start with msg_"),
        ("msg_", "ID msg_ has nothing after its prefix"),
        ("msg_a/b", "ID msg_a/b has characters other than"),
        ("msg_..", "ID msg_.. has characters other than"),
        ("msg_*", "ID msg_* has characters other than"),
        ("msg_a\0", r"ID msg_a\x00 has characters other than"),
        ("msg_a\n", r"ID msg_a\n has characters other than"),
        ("msg_é", r"ID msg_\xe9 has characters other than"),
        ("msg_" + "x" * 125, "is longer than 128 characters"),
        ("msg_" + "x" * 10_000, "is longer than 128 characters"),
        ("../" + "x" * 10_000, "does not start with msg_"),
    ],
)
def test_a_given_id_that_does_not_fit_is_refused(given: str, said: str) -> None:
    """A foreign prefix, and whatever could mean something to a path or a pattern, with a short message."""
    with pytest.raises(InvalidInput) as caught:
        Mint(FakeClock(0)).ascending("msg", given)

    assert said in str(caught.value)
    assert len(str(caught.value)) < 150
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("given", ["msg_1", "msg_a-b_C", "msg_" + "x" * 124, "msg_" + "0" * 26])
def test_a_given_id_that_fits_is_kept(given: str) -> None:
    """Both directions keep it as it is."""
    mint = Mint(FakeClock(0))

    assert given == mint.ascending("msg", given)
    assert given == mint.descending("msg", given)


def test_the_shape_is_prefix_time_counter_and_tail() -> None:
    """12 hex digits of time * 4096 + counter, then 14 base62 characters from one random byte each."""
    mint = Mint(FakeClock(0x123456789), random=lambda count: bytes(range(55, 55 + count)))

    assert mint.ascending("msg") == "msg_123456789001" + "tuvwxyz0123456"


def test_descending_is_the_complement() -> None:
    """The newest session sorts first."""
    clock = FakeClock(0x123456789)
    mint = Mint(clock, random=zeros)
    first = mint.descending("ses")
    clock.ms += 1

    assert first == "ses_edcba9876ffe" + ZEROS
    assert mint.descending("ses") < first


def test_one_counter_serves_every_prefix_and_both_directions() -> None:
    """Within a millisecond the counter goes 1, 2, 3 whatever is minted; in the next it begins anew."""
    clock = FakeClock(1)
    mint = Mint(clock, random=zeros)
    minted = [mint.ascending("msg"), mint.ascending("prt"), mint.descending("ses"), mint.above("evt", "")]
    clock.ms = 2

    assert minted == [
        f"msg_000000001001{ZEROS}",
        f"prt_000000001002{ZEROS}",
        f"ses_ffffffffeffc{ZEROS}",
        f"evt_000000001004{ZEROS}",
    ]
    assert mint.ascending("msg") == f"msg_000000002001{ZEROS}"


def test_a_full_counter_carries_into_the_time() -> None:
    """More than 4,095 ids in a millisecond still rise, and so do those of the next one."""
    clock = FakeClock(1)
    mint = Mint(clock)
    minted = [mint.ascending("prt") for _ in range(10_000)]
    clock.ms = 2
    minted += [mint.ascending("prt") for _ in range(10)]

    assert minted == sorted(set(minted))


def test_a_clock_that_goes_back_does_not_take_the_ids_along() -> None:
    """The last time is kept until the clock has caught up."""
    clock = FakeClock(10)
    mint = Mint(clock, random=zeros)
    minted = [mint.ascending("msg")]
    for now_ms in (5, 9, 11):
        clock.ms = now_ms
        minted.append(mint.ascending("msg"))

    assert minted == [
        f"msg_{hex12}{ZEROS}" for hex12 in ("00000000a001", "00000000a002", "00000000a003", "00000000b001")
    ]


def test_the_wrap_is_where_the_specification_has_it() -> None:
    """26 times 2^36 ms after the epoch, the hex goes from its top to zero."""
    clock = FakeClock(WRAP_MS - 1)
    mint = Mint(clock, random=zeros)
    before = mint.ascending("msg")
    clock.ms = WRAP_MS

    assert datetime(2026, 8, 14, 11, 19, 55, 136000, UTC) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
        milliseconds=WRAP_MS
    )
    assert before == f"msg_fffffffff001{ZEROS}"
    assert mint.ascending("msg") == f"msg_000000000001{ZEROS}"


@pytest.mark.parametrize("jump_ms", [1, TEN_YEARS_MS, -TEN_YEARS_MS, 3 * TEN_YEARS_MS])
@pytest.mark.parametrize("start_ms", [WRAP_MS - 1, WRAP_MS, WRAP_MS - 500, WRAP_MS + 86_400_000])
def test_ids_of_a_session_rise_on_both_sides_of_the_wrap(start_ms: int, jump_ms: int) -> None:
    """Over the wrap and with the clock ten years off either way, by new processes, an id sorts after its
    floor.
    """
    minted = [""]
    for now_ms in (start_ms, start_ms + jump_ms, start_ms + 1, WRAP_MS - 1, WRAP_MS, WRAP_MS + 1):
        mint = Mint(FakeClock(now_ms))
        for _ in range(3):
            minted.append(ids.body(mint.above("msg", minted[-1])))

    assert minted == sorted(set(minted))
    assert {26} == {len(body) for body in minted[1:]}


@pytest.mark.parametrize(
    ("floor", "expected"),
    [
        ("", "000000001001" + ZEROS),
        ("000000001000" + "z" * 14, "000000001001" + ZEROS),
        ("000000001001" + "z" * 14, "000000001002" + ZEROS),
        ("0000000fffff" + "z" * 14, "000000100000" + ZEROS),
        ("fffffffffffe" + "z" * 14, "f" * 12 + ZEROS),
        # The hex is at its top: the tail rises, half of it stays random.
        ("f" * 12 + ZEROS, "f" * 12 + "00000010000000"),
        ("f" * 12 + "000000z" + "x" * 7, "f" * 12 + "00000100000000"),
        ("f" * 12 + "Azzzzzz" + "x" * 7, "f" * 12 + "B" + "0" * 13),
        ("f" * 12 + "Z" * 14, "f" * 12 + "ZZZZZZa" + "0" * 7),
        # Nothing can rise: longer.
        ("f" * 12 + "z" * 14, "f" * 12 + "z" * 14 + ZEROS),
        ("f" * 12 + "z" * 14 + ZEROS, "f" * 12 + "z" * 14 + "0000001" + "0" * 7),
        ("z" * 26, "z" * 26 + ZEROS),
        # Foreign shapes: a hex is found wherever there is one.
        ("f", "f" + "0" * 11 + ZEROS),
        ("abc", "abc" + "0" * 9 + ZEROS),
        ("ff-", "ff" + "0" * 10 + ZEROS),
        ("ffA", "ffa" + "0" * 9 + ZEROS),
        ("a_z", "aa" + "0" * 10 + ZEROS),
        ("0fzz", "1" + "0" * 11 + ZEROS),
        ("1efg", "1f" + "0" * 10 + ZEROS),
        ("ABCDEF", "a" + "0" * 11 + ZEROS),
        ("zeta", "zeta" + ZEROS),
        ("ffz", "ffz" + ZEROS),
        ("g" + "0" * 25, "g" + "0" * 17 + "1" + "0" * 7),
        ("~tilde", "~tilde" + ZEROS),
        ("é" * 30, "é" * 30 + ZEROS),
    ],
)
def test_above(floor: str, expected: str) -> None:
    """A fresh id, the floor's hex plus one, its tail raised, or the floor made longer: always greater."""
    minted = Mint(FakeClock(1), random=zeros).above("msg", floor)

    assert minted == f"msg_{expected}"
    assert ids.body(minted) > floor


def test_two_processes_above_one_floor_mint_different_ids() -> None:
    """However the floor is raised, the end is random."""
    for floor in ("f" * 12 + "0" * 14, "f" * 12 + "z" * 14, "fffffffff000" + "z" * 14, "zeta"):
        minted = {Mint(FakeClock(1)).above("msg", floor) for _ in range(50)}

        assert len(minted) == 50


@pytest.mark.parametrize("now_ms", [0, 1, WRAP_MS - 1, WRAP_MS, 1_700_000_000_000, WRAP_MS + TEN_YEARS_MS])
@pytest.mark.parametrize("off_ms", [0, 1, -1, 86_400_000, -86_400_000, 2**35 - 2, -(2**35) + 1])
def test_timestamp_is_the_nearest_to_the_reference(now_ms: int, off_ms: int) -> None:
    """On both sides of the wrap, with a reference up to half a wrap off."""
    assert now_ms == ids.timestamp(Mint(FakeClock(now_ms)).ascending("msg"), now_ms + off_ms)


def test_timestamp_without_a_reference_is_the_nearest_to_now() -> None:
    """As the documents write it: a time within 397 days of now is the one that the id was made at."""
    clock = SystemClock()
    for off_ms in (0, -86_400_000, 86_400_000):
        now_ms = clock.now_ms() + off_ms

        assert now_ms == ids.timestamp(Mint(FakeClock(now_ms)).ascending("msg"))


def test_timestamp_ten_years_off_is_a_time_with_the_same_bits() -> None:
    """A reference that is too far off gives a wrong time, but the one nearest to it."""
    found = ids.timestamp(Mint(FakeClock(WRAP_MS)).ascending("msg"), WRAP_MS + TEN_YEARS_MS)

    assert (found - WRAP_MS) % 2**36 == 0
    assert abs(found - WRAP_MS - TEN_YEARS_MS) <= 2**35


@pytest.mark.parametrize("id", ["", "msg", "msg_", "msg_0123", "msg_zzzzzzzzzzzz", "msg_0123456789AB"])
def test_an_id_without_time_is_refused(id: str) -> None:
    """A foreign id has no time to read."""
    with pytest.raises(InvalidInput, match="carries no time"):
        ids.timestamp(id, 0)


def test_the_body_is_what_follows_the_first_underscore() -> None:
    """Bodies may hold underscores; what has none has no body."""
    assert [ids.body(id) for id in ("msg_1", "msg_a_b", "msg", "")] == ["1", "a_b", "", ""]


def test_threads_never_mint_the_same_hex() -> None:
    """Eight threads on one mint: no two ids share time and counter."""
    mint = Mint(FakeClock(1))
    minted: list[str] = []
    threads = [
        threading.Thread(target=lambda: minted.extend([mint.ascending("prt") for _ in range(500)]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({id[:16] for id in minted}) == 4_000


@pytest.mark.parametrize("start_ms", [1, WRAP_MS - 1, WRAP_MS])
def test_many_ids_at_once_rise(start_ms: int) -> None:
    """On both sides of the wrap and across it; and what is minted next comes after them."""
    mint = Mint(FakeClock(start_ms))
    minted = mint.rising(("msg", "prt") * 5_000)
    bodies = [ids.body(id) for id in minted]
    assert [id[:4] for id in minted] == ["msg_", "prt_"] * 5_000
    assert bodies == sorted(set(bodies))
    assert ids.body(mint.above("msg", bodies[-1])) > bodies[-1]
    assert mint.rising(()) == []
