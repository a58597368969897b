"""Where a store is: a URL, and back."""

from pathlib import Path

import pytest

from holdfast.errors import ContextError, InvalidInput
from holdfast.store.store_url import find_place, shown


@pytest.mark.parametrize("name", ["plain", "a#b", "a?b", "a%20b", "a b", "ü", "a\tb", "a%", "\udcff", "[x]"])
def test_the_url_of_the_default_store_names_it_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever signs the path has, both ways to open it find the same file."""
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", f"/tmp/{name}")
    place = find_place()
    assert place.path == Path(f"/tmp/{name}/holdfast/holdfast.db")
    assert find_place(place.url).path == place.path


@pytest.mark.parametrize(
    "url",
    ["sqlite://[", "postgresql://[", "sqlite:///a#b", "file:///a?b", "sqlite:///a\tb", " sqlite:///a", "x"],
)
def test_what_means_another_path_than_it_says_is_refused(url: str) -> None:
    """The parser drops signs and parts in silence, or raises its own error."""
    with pytest.raises(InvalidInput):
        find_place(url)


def test_no_message_shows_a_password() -> None:
    """Not even of a URL that cannot be read."""
    for url in ("postgresql://me:hunter2@host/db", "postgresql://me:hunter2@[", "postgresql://me:hunter2@℀/"):
        assert "hunter2" not in shown(url)
    with pytest.raises(InvalidInput) as caught:
        find_place("postgresql://me:hunter2@[")
    assert "hunter2" not in str(caught.value)


def test_a_person_without_a_home_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative home would be another one in every directory."""
    for name in ("HOLDFAST_STORE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "somewhere")
    with pytest.raises(ContextError, match="HOME"):
        find_place()
