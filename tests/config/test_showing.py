"""What may be shown of settings, and the schema for editors."""

import json

import pytest

from holdfast.config.layers import editor_schema, redact
from holdfast.config.layers.check import LEGACY
from holdfast.schema.config import Config
from holdfast.secret_text import HIDDEN
from tests.config.world import World, write

SECRET = "hunter2hunter2"


def test_no_secret_is_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the name of its key, not in headers, commands or addresses, and not from the environment."""
    monkeypatch.setenv("MINE", SECRET)
    write(world.home / "token.txt", SECRET)
    write(
        world.ours / "holdfast.json",
        {
            "username": "{env:MINE}",
            "provider": {
                "p": {
                    "options": {
                        "apiKey": SECRET,
                        "baseURL": f"https://me:{SECRET}@host.example/v1?token={SECRET}&x=1",
                        "clientSecret": SECRET,
                        "nested": {"accessToken": SECRET, "max_tokens": 5, "other": "{file:~/token.txt}"},
                        "headers": {"X-Anything": SECRET},
                    }
                },
                "q": {"options": {"apiKey": "{env:MINE}"}},
            },
            "mcp": {
                "m": {
                    "type": "local",
                    "command": ["run", "--token", SECRET, f"sk-{SECRET}", f"Bearer {SECRET}"],
                    "environment": {"A": SECRET},
                }
            },
            "agents": {"x": {"system": "say {env:MINE}", "secret": SECRET}},
            "plugin": [["one", {"password": SECRET}]],
        },
    )
    loaded = world.load()
    assert SECRET in json.dumps(loaded.value)
    shown = redact.redacted(loaded.value, loaded.origins)

    assert SECRET not in json.dumps(shown)
    assert shown["username"] == "{env:MINE}"
    assert shown["provider"]["q"]["options"]["apiKey"] == HIDDEN
    assert shown["provider"]["p"]["options"]["nested"]["max_tokens"] == 5
    assert shown["provider"]["p"]["options"]["baseURL"] == (
        f"https://{HIDDEN}@host.example/v1?token={HIDDEN}&x=1"
    )
    assert shown["mcp"]["m"]["command"] == ["run", "--token", *[HIDDEN] * 3]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"command": [f"--api-key={SECRET}", "--model=m"]},
            {"command": [f"--api-key={HIDDEN}", "--model=m"]},
        ),
        ({"command": ["-e", f"API_KEY={SECRET}"]}, {"command": ["-e", f"API_KEY={HIDDEN}"]}),
        ({"command": f"run --token={SECRET} x"}, {"command": f"run --token={HIDDEN} x"}),
        (
            {"command": ["--header", f"X-Auth: {SECRET}", "-H", SECRET, "last"]},
            {"command": ["--header", f"X-Auth: {HIDDEN}", "-H", HIDDEN, "last"]},
        ),
        ({"command": [f"--header=X: {SECRET}", f"-HX: {SECRET}"]}, {"command": [HIDDEN, HIDDEN]}),
        ({"command": ["-u", f"me:{SECRET}"]}, {"command": ["-u", HIDDEN]}),
        (
            {"keys": [SECRET], "tokens": [SECRET, {"a": SECRET}]},
            {"keys": [HIDDEN], "tokens": [HIDDEN, {"a": HIDDEN}]},
        ),
        ({"password": 123456, "auth": {"user": SECRET}}, {"password": HIDDEN, "auth": {"user": HIDDEN}}),
        ({"headers": {"a": [SECRET]}}, {"headers": {"a": [HIDDEN]}}),
        (
            {"max_tokens": 5, "apiKey": None, "token": False},
            {"max_tokens": 5, "apiKey": None, "token": False},
        ),
        ({"agent": {"auth": {"mode": "all"}}}, {"agent": {"auth": {"mode": "all"}}}),
        ({"permission": {"get_secret": {"*": "ask"}}}, {"permission": {"get_secret": {"*": "ask"}}}),
        ({"token": "{env:MINE}", "x": "KEY={env:MINE}"}, {"token": "{env:MINE}", "x": "KEY={env:MINE}"}),
    ],
)
def test_secrets_in_every_form_are_hidden(value: dict[str, object], expected: dict[str, object]) -> None:
    """Options of a program, headers, lists, numbers and objects; and nothing that is none."""
    assert redact.redacted(value, {}) == expected


@pytest.mark.parametrize(
    "name", ["max_tokens", "preserve_recent_tokens", "monkey", "keybinds", "author", "passthrough", "compass"]
)
def test_ordinary_names_are_not_taken_for_secrets(name: str) -> None:
    """Words that merely contain another."""
    assert redact.redacted({name: "v"}, {}) == {name: "v"}


def test_the_schema_file_is_that_of_the_types() -> None:
    """`holdfast config schema > src/holdfast/config/layers/holdfast.schema.json` renews it."""
    assert editor_schema.FILE.read_bytes() == editor_schema.encoded()


def test_the_schema_knows_every_key() -> None:
    """Those of the type, older ones, and those that we pass over."""
    keys = editor_schema.schema()["$defs"]["Config"]["properties"].keys()

    assert keys >= {*Config.__struct_encode_fields__, *LEGACY, "mode", "$schema", "theme"}


def test_harmless_values_under_older_names_are_shown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the file asks the environment for something else; what came from there stays hidden."""
    monkeypatch.setenv("MINE", SECRET)
    write(
        world.ours / "holdfast.json",
        {
            "username": "{env:MINE}",
            "tools": {"mymcp_*": False},
            "mode": {"ask": {"prompt": "Only ask.", "model": "{env:MINE}/m"}},
            "agent": {"x": {"prompt": "p", "reasoningEffort": "high", "secretNote": SECRET}},
        },
    )
    loaded = world.load()
    shown = redact.redacted(loaded.value, loaded.origins)

    assert SECRET not in json.dumps(shown)
    assert shown["permission"] == {"mymcp_*": "deny"}
    assert (shown["agent"]["ask"]["prompt"], shown["agent"]["ask"]["mode"]) == ("Only ask.", "primary")
    assert shown["agent"]["x"]["options"]["reasoningEffort"] == "high"
