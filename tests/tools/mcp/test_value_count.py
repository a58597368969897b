"""Values are counted before they are decoded, wherever the text is cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.mcp.wire.value_count import VALUES_MAX, ValueCount

VALUE = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a"\\\\,[{ü\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='a"\\\\,[{'), inner),
    max_leaves=20,
)


def counted(*pieces: bytes) -> int:
    count = ValueCount()
    for piece in pieces:
        count.take(piece)
    return count.values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": [1, 2, {}], "b": "x, [y] {z}"}', 6),
        (r'["a \\", "b\", c", "\\\" ,"]', 3),
        ('"' + "," * 1_000 + '"', 0),
        ("[]" * 1_000, 1_000),
    ],
)
def test_what_stands_in_quotes_is_not_counted(text: str, values: int) -> None:
    """A comma in a text begins no value, nor does one after an escaped quote."""
    assert counted(text.encode()) == values


@pytest.mark.ci
@given(VALUE, st.data())
def test_where_a_text_is_cut_makes_no_difference(value: object, data: st.DataObject) -> None:
    """Byte by byte, in any pieces, and whole."""
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode()
    at = data.draw(st.integers(0, len(text)))

    whole = counted(text)
    assert counted(text[:at], text[at:]) == whole
    assert counted(*(text[n : n + 1] for n in range(len(text)))) == whole


def test_a_text_is_cheap_however_long_it_is() -> None:
    """One that never ends is looked at once."""
    count = ValueCount()
    count.take(b'{"a": "')
    for _ in range(100):
        count.take(rb"a,[\"\\ " * 1_000)

    assert (count.values, count.too_many) == (1, False)
    count.take(b'", "b": [' + b"[]," * VALUES_MAX)
    assert count.too_many
