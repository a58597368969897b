"""The names under which the model calls the tools of servers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.mcp.names import named, plain


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("docs", "search", "docs_search"),
        ("my docs", "read/page.v2", "my_docs_read_page_v2"),
        ("größe", "日本", "gr__e___"),
        ("a-b", "c-d", "a-b_c-d"),
        ("s", "t" * 80, f"s_{'t' * 53}_02174516"),
    ],
)
def test_a_name_is_the_server_s_and_the_tool_s_without_odd_signs(server: str, tool: str, name: str) -> None:
    """Every other sign becomes `_`; a long name is cut and ends with a digest of the whole."""
    assert plain(server, tool) == name


def test_tools_that_would_share_a_name_get_a_digest_in_whatever_order_they_come() -> None:
    """Each of them, so that the order of the list decides nothing; so does a name that another tool has."""
    once = named("s", ["a.b", "a/b", "c"], {"s_c"})

    assert once == dict(reversed(named("s", ["c", "a/b", "a.b"], {"s_c"}).items()))
    assert [name[:-8] for name in once.values()] == ["s_a_b_", "s_a_b_", "s_c_"]
    assert len(set(once.values())) == 3


@given(st.text(max_size=90), st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=8))
def test_every_name_is_one_that_providers_take(server: str, tools: list[str]) -> None:
    """Letters, digits, `_` and `-`, at most 64 of them, and no name twice."""
    names = list(named(server, tools, ()).values())

    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert len(set(names)) == len(tools)
