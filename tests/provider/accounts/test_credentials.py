"""Credentials: whose file wins, who can read it, and that no key is ever seen."""

import json
import pickle
import stat
import threading
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import ContextError, InvalidInput
from holdfast.provider.accounts import credentials
from holdfast.provider.accounts.secret import Credential, Secret

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize("text", [f'{{"a": {{"type": "api", "key": "{KEY}"', f'["{KEY}"]', f"{KEY}", "\x00"])
@pytest.mark.parametrize("whose", ["ours", "OpenCode's"])
def test_a_broken_file_is_named_and_not_shown(text: str, whose: str) -> None:
    """The error says which file it is, and nothing of what is in it."""
    path = credentials.our_file() if whose == "ours" else credentials.opencode_file()
    put(path, text)
    with pytest.raises(ContextError, match="is not a JSON object of credentials") as caught:
        credentials.load()
    assert str(path) in str(caught.value)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_broken_file_is_not_written_over() -> None:
    """Somebody may mend it."""
    put(credentials.our_file(), "{broken")
    with pytest.raises(ContextError):
        credentials.save_key("a", Secret(KEY))
    assert credentials.our_file().read_text() == "{broken"


@pytest.mark.parametrize("key", ["", "  ", "two words", "a\nb", "a\x00b", "k" * 20_000])
def test_what_can_be_no_key_is_refused(key: str) -> None:
    """It would fail later, at the provider, in a header."""
    with pytest.raises(InvalidInput, match="that is no key for a") as caught:
        credentials.save_key("a", Secret(key))
    assert "two words" not in str(caught.value)
    assert not credentials.our_file().exists()


def test_without_files_there_are_none() -> None:
    """And nothing is made by looking."""
    assert credentials.load() == {}
    assert not credentials.our_file().parent.exists()


def test_every_type_is_read_and_ours_wins() -> None:
    """OpenCode's file lies underneath; entries of no type that we know are passed over."""
    put(
        credentials.opencode_file(),
        {
            "a": {"type": "api", "key": "theirs"},
            "b": {"type": "oauth", "refresh": "r", "access": "x", "expires": 1},
            "https://h.example": {"type": "wellknown", "key": "H_TOKEN", "token": "t"},
            "odd": {"type": "new"},
            "odder": 5,
        },
    )
    put(credentials.our_file(), {"a": {"type": "api", "key": "ours", "metadata": {"team": "x"}}})
    found = credentials.load()
    assert found == {
        "a": Credential(type="api", secret=Secret("ours"), origin="file", metadata={"team": "x"}),
        "b": Credential(type="oauth", secret=Secret("x"), origin="opencode"),
        "https://h.example": Credential(
            type="wellknown", secret=Secret("t"), origin="opencode", variable="H_TOKEN"
        ),
    }


def test_a_saved_key_is_for_the_person_alone() -> None:
    """0600 from the first moment, also where the file was readable before; other entries survive."""
    put(credentials.our_file(), {"odd": {"type": "new", "x": 1}})
    credentials.our_file().chmod(0o644)
    credentials.save_key("a", Secret(f" {KEY}\n"))
    assert stat.S_IMODE(credentials.our_file().stat().st_mode) == 0o600
    assert json.loads(credentials.our_file().read_text()) == {
        "odd": {"type": "new", "x": 1},
        "a": {"type": "api", "key": KEY},
    }


def test_forgetting_leaves_the_others() -> None:
    """And OpenCode's file as it is."""
    put(credentials.opencode_file(), {"a": {"type": "api", "key": "theirs"}})
    before = credentials.opencode_file().read_bytes()
    credentials.save_key("a", Secret("1"))
    credentials.save_key("b", Secret("2"))
    assert credentials.forget("a")
    assert not credentials.forget("a")
    assert {id: one.secret.reveal() for id, one in credentials.load().items()} == {"a": "theirs", "b": "2"}
    assert credentials.opencode_file().read_bytes() == before


def test_two_at_once_lose_nothing() -> None:
    """Each edit is one step under a lock."""
    work = [threading.Thread(target=credentials.save_key, args=(f"p{n}", Secret("k"))) for n in range(8)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(credentials.load()) == 8


def test_a_secret_is_not_seen() -> None:
    """Not in its repr or str, not in that of what carries it, and it goes into no JSON and no pickle."""
    secret = Secret(KEY)
    carrier = Credential(type="api", secret=secret, origin="file")
    assert KEY not in f"{secret} {secret!r} {carrier} {carrier!r} {[secret]} {vars(type(secret))}"
    with pytest.raises(TypeError):
        msgspec.json.encode(carrier)
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert secret == Secret(KEY) != Secret("other")
