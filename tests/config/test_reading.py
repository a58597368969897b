"""Reading one file: syntax, positions, types, substitution, front matter."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config.documents import markdown, positions
from holdfast.errors import ContextError, InvalidInput
from tests.config.world import World, write

JSON = "opencode.jsonc"
TOML = ".holdfast/config.toml"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (JSON, '{\n  "model": "a/b",,\n}', ":2:18: unexpected ','; this is not valid JSON"),
        (JSON, '{"a": [1, 2', ":1:7: is not finished; this is not valid JSON"),
        (JSON, '{\n "snapshot": tru}', ":2:17: unexpected '}'; this is not valid JSON"),
        (JSON, "{} x", ":1:4: unexpected 'x'; this is not valid JSON"),
        (JSON, "[]", ":1:1: settings are an object: { … }"),
        (JSON, '{"a":' * 40 + "1" + "}" * 40, "is nested too deeply; this is not valid JSON"),
        (JSON, '{"provider": {"x": {"options": {"n": NaN}}}}', ":1:33: provider.x.options.n is not a finite"),
        (JSON, '{\n"model": 3}', ":2:1: model: expected a text, got a whole number"),
        (
            JSON,
            '{"permission":\n {"bash": {"*": "ask",\n  "rm *": "never"}}}',
            ":3:3: permission.bash.rm *: expected one of 'allow', 'deny', 'ask'",
        ),
        (JSON, '{"agent": {\n"x": {"steps": 0}}}', ":2:7: agent.x.steps: expected a whole number >= 1"),
        (
            JSON,
            '{"agents": {"x": {\n"maxSteps": "no"}}}',
            ":2:1: agent.x.steps: expected a whole number, got a text",
        ),
        (
            JSON,
            '{"formatter": 5}',
            ":1:2: formatter: expected true or false or an object, got a whole number",
        ),
        (JSON, '{"subagent_depth": 1e400}', ":1:20: a number that is not finite, or not a number at all;"),
        (
            JSON,
            '{"provider": {"x": {"models": {"m": {"limit":\n{"context": -5}}}}}}',
            ":2:2: provider.x.models.m.limit.context: expected a number >= 0",
        ),
        (
            JSON,
            '{"provider": {"x": {"models": {"m": {"cost":\n{"input": 1, "output": -2}}}}}}',
            ":2:14: provider.x.models.m.cost.output: expected a number >= 0",
        ),
        (JSON, '{"tools": {\n"bash": "no"}}', ":2:1: tools.bash: expected true or false, got a text"),
        (JSON, '{"autoshare": "yes"}', ":1:2: autoshare: expected true or false, got a text"),
        (JSON, '{"command": {"c": {"description": "d"}}}', ":1:14: command.c: object missing required"),
        (JSON, '{"agent": {"x": {"color": "red"}}}', ":1:18: agent.x.color: expected a text matching"),
        (TOML, "model = \n", ":1:9: this is not valid TOML"),
        (TOML, "\n[compaction]\nauto = 3\n", ":3:1: compaction.auto: expected true or false, got a whole"),
        (TOML, "a = " + "[" * 20000, ":1:1: is nested too deeply"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_column(name: str, text: str, said: str, world: World) -> None:
    """One line that names where it is and what is wrong."""
    path = write(world.project / name, text)
    with pytest.raises(InvalidInput) as raised:
        world.load()

    assert str(raised.value).startswith(f"{path}:")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_bytes_that_are_no_text_are_told(world: World) -> None:
    """With their place."""
    path = world.project / JSON
    path.write_bytes(b'{\n"model": "\xff"}')
    with pytest.raises(InvalidInput, match=r":2:11: is not UTF-8"):
        world.load()


def test_what_is_no_file_or_too_large_is_refused(world: World) -> None:
    """A pipe does not hold us, and a huge file is not read."""
    os.mkfifo(world.project / JSON)
    with pytest.raises(ContextError, match="is no regular file"):
        world.load()
    (world.project / JSON).unlink()
    write(world.project / JSON, " " * (1024 * 1024 + 1))
    with pytest.raises(ContextError, match="is larger than"):
        world.load()


def test_comments_trailing_commas_and_a_mark_at_the_beginning_are_fine(world: World) -> None:
    """JSON as people write it; an empty file says nothing."""
    write(world.project / JSON, '\ufeff{ // c\n /* d */ "model": "a/b", "x-y": [1,],\n}')
    write(world.project / "holdfast.json", "")

    assert world.load().value == {"model": "a/b"}


def test_unknown_keys_are_warned_about_and_ignored(world: World) -> None:
    """With path and position; keys of OpenCode that mean nothing here are passed over in silence."""
    path = write(
        world.project / JSON,
        '{"$schema": "s", "theme": "t", "keybinds": {}, "tui": {}, "autoupdate": true, "layout": "auto",\n'
        ' "modell": "a/b",\n "compaction": {"atuo": true},\n "agent": {"x": {"anything": 1}},\n'
        ' "experimental": {"openTelemetry": true}}',
    )
    loaded = world.load()

    assert loaded.warnings == (
        f"{path}:2:2: modell is no setting that Holdfast knows; it is ignored",
        f"{path}:3:17: compaction.atuo is no setting that Holdfast knows; it is ignored",
    )
    assert loaded.config.agent is not None
    assert loaded.config.agent["x"].options == {"anything": 1}
    assert path.read_text().startswith('{"$schema": "s", "theme"'), "the person's file stays as it is"


def test_variables_and_files_are_put_in(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text and nothing else: quotes, line ends and braces stay signs of the value; comments are left."""
    monkeypatch.setenv("KEY", 'a"b\\c\n{env:HOME}')
    write(world.project / "prompt.txt", '\n  say "hi"\nthen stop \n')
    write(world.home / "name.txt", "me")
    write(
        world.project / JSON,
        '{ // {file:missing}\n "provider": {"p": {"options": {"apiKey": "k-{env:KEY}-{env:NONE}"}}},\n'
        ' "agent": {"x": {"prompt": "{file:./prompt.txt}"}}, "username": "{file:~/name.txt}"}',
    )
    value = world.load().value

    assert value["provider"]["p"]["options"]["apiKey"] == 'k-a"b\\c\n{env:HOME}-'
    assert value["agent"]["x"]["prompt"] == 'say "hi"\nthen stop'
    assert value["username"] == "me"


def test_a_missing_file_is_an_error_with_a_position(world: World) -> None:
    """The message names the place in the settings and the file."""
    path = write(world.project / JSON, '{\n  "username": "{file:nowhere.txt}"}')
    with pytest.raises(InvalidInput) as raised:
        world.load()

    missing = world.project / "nowhere.txt"
    assert str(raised.value) == f"{path}:2:3: there is no file {missing}; create it or name another"


def test_a_named_file_must_exist(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """CONFIG names one file; a folder that CONFIG_DIR names and that is missing is only told."""
    monkeypatch.setenv("HOLDFAST_CONFIG_DIR", "/nowhere")
    assert world.load().warnings == ("HOLDFAST_CONFIG_DIR names /nowhere, which is no folder",)
    monkeypatch.setenv("HOLDFAST_CONFIG", "gone.json")
    with pytest.raises(InvalidInput, match=r"HOLDFAST_CONFIG names .*/sub/gone.json, which does not exist"):
        world.load()


def test_no_secret_shows_in_a_repr(world: World) -> None:
    """Settings name their keys, not their values."""
    write(
        world.project / JSON,
        {
            "provider": {"p": {"options": {"apiKey": "hunter2"}}},
            "mcp": {"m": {"type": "remote", "url": "u", "headers": {"A": "hunter2"}}},
        },
    )
    loaded = world.load()

    assert repr(loaded) == "Loaded(Config(provider, mcp))"
    assert "hunter2" not in repr(loaded.config.provider)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.ci
@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 2]))
def test_the_scanner_finds_every_key(value: dict[str, object], indent: int | None) -> None:
    """Each key and item of any document is found, at the place where its text begins."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=indent or 0).decode()
    found = positions.of_json(text)

    def check(item: object, path: tuple[str | int, ...]) -> None:
        pairs = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        for key, inner in pairs:
            rest = text[found[*path, key] :]
            if isinstance(key, str):
                assert rest.startswith(f"{msgspec.json.encode(key).decode()}:")
            else:
                assert rest.startswith(msgspec.json.encode(inner).decode()[:1])
            check(inner, (*path, key))

    check(value, ())


@pytest.mark.parametrize(
    ("text", "head", "body"),
    [
        ("Just text.\n", {}, "Just text."),
        ("---\na: 1\nb: [x, y]\n---\n\nBody\n---\nmore\n", {"a": 1, "b": ["x", "y"]}, "Body\n---\nmore"),
        ("---\n---\nBody", {}, "Body"),
        ("---\r\na: x\r\n---\r\nBody", {"a": "x"}, "Body"),
        ("---\na: Use when: always\nmode: all\n---\nB", {"a": "Use when: always", "mode": "all"}, "B"),
        ("---\nd: 2024-01-02\non: yes\n7: x\n---\n", {"d": "2024-01-02", "True": True, "7": "x"}, ""),
    ],
)  # fmt: skip
def test_front_matter(text: str, head: dict[str, object], body: str) -> None:
    """Settings between the lines, text below; values with colons need no quotes."""
    assert markdown.split(text) == (head, body)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x [1]\nb: *x", "aliases"),
        ("a: " + "[" * 2000, "nested too deeply|not YAML"),
        ("a: " + "[" * 40 + "]" * 40, "nested too deeply"),
        ("- a\n- b", "no list of keys"),
        ("a: [1, 2", "not YAML"),
        ("a: !!python/object/apply:os.system ['true']", "not YAML"),
        ("a: .nan", "not finite"),
        ("a: 2024-99-99", "cannot be"),
        ("a: " + "9" * 30, "too large"),
        ("a: !!binary aGk=", "of a kind"),
        ("a: " + "x" * 70000, "more than 65536"),
    ],
)
def test_front_matter_of_strangers_does_no_harm(text: str, said: str) -> None:
    """Bombs, programs and nonsense end in a few words."""
    with pytest.raises(markdown.BadFrontMatter, match=said):
        markdown.split(f"---\n{text}\n---\nBody")


def test_a_bad_agent_file_is_skipped_with_a_warning(world: World) -> None:
    """The others are read; a command without the right shape is an error."""
    bad = write(world.project / ".opencode/agent/bad.md", "---\na: [1\n---\nB")
    write(world.project / ".opencode/agents/good.md", "---\nname: better\n---\nB")
    loaded = world.load()

    assert list(loaded.value["agent"]) == ["better"]
    assert loaded.warnings == (f"{bad}:3:1: its front matter is not YAML; the file is left out",)
    path = write(world.project / ".opencode/command/c.md", "---\ndescription: d\nsubtask: 5\n---\nB")
    with pytest.raises(InvalidInput, match=f"{path}:3:1: command.c.subtask: expected true or false"):
        world.load()


@pytest.mark.parametrize(
    ("head", "place"),
    [
        ("a: 1\nb: &x [1]\nc: *x", (4, 4)),
        ("a: 1\n\tb: 2", (3, 1)),
        ("a: Use when: always\nb: x: [y\nc: !!python/name:os.system 1", (4, 4)),
        ("a:\n  b: " + "[" * 40 + "]" * 40, (3, 36)),
        ("- a", (2, 1)),
    ],
)
def test_a_mistake_in_front_matter_has_a_place(head: str, place: tuple[int, int]) -> None:
    """Line and column of the file, also where values with colons were read as texts."""
    with pytest.raises(markdown.BadFrontMatter) as raised:
        markdown.split(f"---\n{head}\n---\nBody")

    assert (raised.value.line, raised.value.column) == place


def test_settings_in_front_matter_have_places(world: World) -> None:
    """Warnings and errors about agents and commands name line and column, whatever stands above."""
    path = write(
        world.ours / "command/c.md", "---\ndescription: Use when: always\nsubtask: true\nodd: 1\n---\nB"
    )
    assert world.load().warnings == (
        f"{path}:4:1: command.c.odd is no setting that Holdfast knows; it is ignored",
    )
    agent = write(
        world.ours / "agent/team/a.md", "---\r\npermission:\r\n  bash:\r\n    rm: never\r\n---\r\nB"
    )
    with pytest.raises(InvalidInput) as raised:
        world.load()
    assert str(raised.value) == (
        f"{agent}:4:5: agent.team/a.permission.bash.rm: expected one of 'allow', 'deny', 'ask'"
    )


@pytest.mark.ci
def test_folders_are_walked_within_bounds(world: World) -> None:
    """Not deeper than eight levels, modes not at all, and no endless number of files."""
    write(world.ours / "agent" / Path(*"abcdefgh") / "in.md", "B")
    write(world.ours / "agent" / Path(*"abcdefghi") / "out.md", "B")
    write(world.ours / "mode/m.md", "B")
    write(world.ours / "mode/deep/out.md", "B")
    value = world.load().value["agent"]
    assert {name: entry.get("mode") for name, entry in value.items()} == {
        "a/b/c/d/e/f/g/h/in": None,
        "m": "primary",
    }

    for number in range(501):
        (world.ours / "agent" / f"{number}.md").write_text("B")
    assert any("more than 500 files" in warning for warning in world.load().warnings)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"mcp": {"m": {"type": "locale", "command": ["x"]}}},
            "mcp.m.type: expected one of 'local', 'remote'",
        ),
        ({"mcp": {"m": {"type": "local", "command": "npx x"}}}, "mcp.m.command: expected a list, got a text"),
        ({"mcp": {"m": {"type": "local"}}}, "mcp.m: a local MCP server needs `command`, a list"),
        ({"mcp": {"m": {"type": "remote"}}}, "mcp.m: a remote MCP server needs `url`"),
        ({"mcp": {"m": {"command": ["x"]}}}, "mcp.m: an MCP server needs `type`: local or remote"),
        (
            {"mcp": {"m": {"type": "local", "command": ["x"], "timeout": 0}}},
            "mcp.m.timeout: expected a whole number >= 1",
        ),
        ({"lsp": {"l": {"extensions": [".x"]}}}, "lsp.l: a language server needs `command`"),
        ({"formatter": {"f": {"command": "black"}}}, "formatter.f.command: expected a list, got a text"),
        ({"permission": {"bash": "maybe"}}, "permission.bash: expected one of 'allow', 'deny', 'ask'"),
    ],
)
def test_an_entry_that_could_never_work_is_refused_by_name(
    world: World, value: dict[str, Any], words: str
) -> None:
    """With the file, the line, the key and what it should be."""
    write(world.ours / "holdfast.json", value)
    with pytest.raises(InvalidInput) as raised:
        world.load()
    assert str(raised.value).startswith(f"{world.ours / 'holdfast.json'}:")
    assert words in str(raised.value)


def test_what_is_read_but_cannot_be_meant_is_warned_of(world: World) -> None:
    """A key that stands twice in one object, and a model without its provider, each with its place."""
    path = write(
        world.ours / "holdfast.jsonc",
        '{"model": "a/b", // mine\n "model": "gpt",\n "small_model": "gpt",\n'
        ' "agent": {"x": {"steps": 1, "steps": 2}, "y": {"steps": 1}}}',
    )
    loaded = world.load()

    assert loaded.warnings == (
        f"{path}:2:2: model stands twice; the last one counts",
        f"{path}:4:30: agent.x.steps stands twice; the last one counts",
        f"{path}:2:2: model is no model's name; write provider/model, for example openai/gpt-5",
        f"{path}:3:2: small_model is no model's name; write provider/model, for example openai/gpt-5",
    )


def test_what_opencode_has_and_we_do_not_is_warned_about(world: World) -> None:
    """Language servers and built-in formatters do nothing here; what takes their place is named."""
    path = write(world.ours / "holdfast.jsonc", '{\n "lsp": {"x": {"command": ["x"]}},\n "formatter": true}')

    assert world.load().warnings == (
        f"{path}:2:2: lsp: language servers are not supported; `checks` can run a type checker after edits",
        f"{path}:3:2: formatter: there are no formatters by default here; name each with its command",
    )
    write(world.ours / "holdfast.jsonc", '{"lsp": false, "formatter": {"a": {"command": ["a"]}}}')
    assert world.load().warnings == ()


def test_front_matter_that_is_not_closed_is_read_to_the_end(world: World) -> None:
    """As OpenCode does. Where the rest is no YAML the file is left out by name; a rule is only a rule."""
    write(world.ours / "agent/open.md", "---\ndescription: Looks\nsteps: 3\n")
    bad = write(world.ours / "agent/torn.md", "---\ndescription: Looks\n\nYou look.\n")
    write(world.ours / "agent/rule.md", "---\nYou are brief: always.\n")
    loaded = world.load()
    assert loaded.config.agent is not None
    found = {name: (each.description, each.steps, each.prompt) for name, each in loaded.config.agent.items()}

    assert found == {"open": ("Looks", 3, None), "rule": (None, None, "---\nYou are brief: always.")}
    assert loaded.warnings == (
        f"{bad}:1:1: its front matter is not closed by a line of three dashes; the file is left out",
    )


def test_entries_of_programs_are_read_as_they_are(world: World) -> None:
    """Every form that OpenCode knows, switches of a single entry among them."""
    value = {
        "mcp": {
            "a": {"type": "local", "command": ["x", "-y"], "environment": {"A": "1"}, "timeout": 5},
            "b": {"type": "remote", "url": "https://x", "headers": {"H": "1"}, "oauth": False},
            "c": {"type": "remote", "url": "https://y", "oauth": {"clientId": "c", "callbackPort": 8080}},
            "d": {"enabled": False},
        },
        "formatter": {"f": {"command": ["black", "$FILE"], "extensions": [".py"]}, "g": {"disabled": True}},
        "lsp": {"l": {"command": ["pyls"], "initialization": {"a": 1}}, "m": {"disabled": True}},
    }
    write(world.ours / "holdfast.json", value)
    loaded = world.load()
    assert msgspec.to_builtins(loaded.config) == value
    assert [each.partition(": ")[2][:4] for each in loaded.warnings] == ["lsp:"]
