"""Each flag, by its name: ours first, else OpenCode's."""

import pytest

from holdfast import flags
from holdfast.errors import InvalidInput


@pytest.mark.parametrize("name", flags.ALL)
def test_each_flag_is_read_under_both_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOLDFAST_X wins over OPENCODE_X, even when it is set to nothing; unset, a flag is None."""
    assert (flags.flag(name), flags.variable_of(name)) == (None, None)
    monkeypatch.setenv(f"OPENCODE_{name}", "theirs")
    assert (flags.flag(name), flags.variable_of(name)) == ("theirs", f"OPENCODE_{name}")
    monkeypatch.setenv(f"HOLDFAST_{name}", "")
    assert (flags.flag(name), flags.variable_of(name)) == ("", f"HOLDFAST_{name}")


def test_the_flags_are_those_of_the_plan() -> None:
    """No flag of the plan is missing, and each is named once."""
    assert sorted(flags.ALL) == [
        "AUTO_SHARE",
        "CONFIG",
        "CONFIG_CONTENT",
        "CONFIG_DIR",
        "DISABLE_AUTOCOMPACT",
        "DISABLE_PROJECT_CONFIG",
        "DISABLE_PRUNE",
        "ENABLE_QUESTION_TOOL",
        "EXPERIMENTAL_OUTPUT_TOKEN_MAX",
        "EXPERIMENTAL_WATCHER",
        "FAKE_VCS",
        "PERMISSION",
        "SERVER_PASSWORD",
        "SERVER_USERNAME",
    ]


@pytest.mark.parametrize(
    ("value", "on"),
    [("1", True), ("true", True), ("TRUE", True), ("0", False), ("yes", False), ("", False)],
)
def test_a_switch_is_on_for_1_and_true(value: str, on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else switches a flag on."""
    monkeypatch.setenv("OPENCODE_DISABLE_PRUNE", value)
    assert flags.enabled(flags.DISABLE_PRUNE) is on


def test_the_watcher_has_a_second_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """EXPERIMENTAL_FILEWATCHER means EXPERIMENTAL_WATCHER; our own spelling of either wins over theirs."""
    monkeypatch.setenv("OPENCODE_EXPERIMENTAL_FILEWATCHER", "1")
    assert flags.enabled(flags.EXPERIMENTAL_WATCHER)
    monkeypatch.setenv("HOLDFAST_EXPERIMENTAL_FILEWATCHER", "0")
    assert not flags.enabled(flags.EXPERIMENTAL_WATCHER)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "9" * 30, "١٢"])
def test_a_number_must_be_whole_and_positive(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong number is an error that names the variable."""
    monkeypatch.setenv("OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX", value)
    with pytest.raises(InvalidInput, match="OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX must be a whole number"):
        flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX)


def test_a_number_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset and empty mean no limit of one's own."""
    assert flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX) is None
    monkeypatch.setenv("HOLDFAST_EXPERIMENTAL_OUTPUT_TOKEN_MAX", " 4096 ")
    assert flags.positive(flags.EXPERIMENTAL_OUTPUT_TOKEN_MAX) == 4096


@pytest.mark.parametrize("value", ["{", "[]", "1", '{"a": "secret', "[" * 10000])
def test_a_json_flag_that_is_no_object_is_named_and_not_shown(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says which variable is wrong, and nothing of what it holds."""
    monkeypatch.setenv("HOLDFAST_PERMISSION", value)
    with pytest.raises(InvalidInput) as raised:
        flags.json_map(flags.PERMISSION)
    assert str(raised.value) == "HOLDFAST_PERMISSION must be a JSON object; change or unset it"


def test_a_json_flag_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys come in the order in which they were written."""
    monkeypatch.setenv("OPENCODE_PERMISSION", '{"bash": "ask", "*": "deny", "a": "allow"}')
    assert list((flags.json_map(flags.PERMISSION) or {}).items()) == [
        ("bash", "ask"),
        ("*", "deny"),
        ("a", "allow"),
    ]
