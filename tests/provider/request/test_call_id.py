"""Ids of tool calls, fitted_id to a wire."""

import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.provider.request.pieces import fitted_id


@given(ids=st.lists(st.text(max_size=90), unique=True, max_size=6), plain=st.booleans())
def test_two_ids_stay_two(ids: list[str], plain: bool) -> None:
    """Whatever was in them, they fit, they differ, and they are the same the next time."""
    made = [fitted_id(id, length_max=40, plain=plain) for id in ids]

    assert len(set(made)) == len(ids)
    assert all(1 <= len(id) <= 40 for id in made)
    assert not plain or all(re.fullmatch(r"[A-Za-z0-9_-]+", id) for id in made)
    assert made == [fitted_id(id, length_max=40, plain=plain) for id in ids]


def test_an_id_that_fits_is_left_alone() -> None:
    """Providers know their own ids."""
    assert fitted_id("toolu_01A-b", length_max=40, plain=True) == "toolu_01A-b"
    assert fitted_id("a.1", length_max=40) == "a.1"
