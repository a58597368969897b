"""The layers of the settings: each over the one before it, and what flags make of them."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.config import load
from holdfast.config.untrusted.well_known import Remote
from tests.config.world import World, write

HOST = "models.example"


def remote(**config: object) -> Remote:
    return Remote(HOST, json.dumps({"config": config}))


# Each way to say `small_model`, in the order in which the layers are laid.
Layer = tuple[str, Callable[[World, pytest.MonkeyPatch, str], Remote | None]]


def file(name: str) -> Callable[[World, pytest.MonkeyPatch, str], None]:
    def lay(world: World, _: pytest.MonkeyPatch, value: str) -> None:
        text = f'small_model = "{value}"' if name.endswith(".toml") else {"small_model": value}
        write(world.home.parent / name, text)

    return lay


def host(_: World, __: pytest.MonkeyPatch, value: str) -> Remote:
    return remote(small_model=value)


def config_dir(world: World, patch: pytest.MonkeyPatch, value: str) -> None:
    write(world.home / "dir/opencode.json", {"small_model": value})
    patch.setenv("OPENCODE_CONFIG_DIR", str(world.home / "dir"))


def config(world: World, patch: pytest.MonkeyPatch, value: str) -> None:
    patch.setenv("OPENCODE_CONFIG", str(write(world.home / "mine.jsonc", {"small_model": value})))


def content(_: World, patch: pytest.MonkeyPatch, value: str) -> None:
    patch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps({"small_model": value}))


LAYERS: list[Layer] = [
    *(
        (name, file(f"home/.config/opencode/{name}"))
        for name in ("config.toml", "config.json", "opencode.json", "opencode.jsonc", "holdfast.json")
    ),
    ("ours: config.toml", file("home/.config/holdfast/config.toml")),
    ("ours: holdfast.json", file("home/.config/holdfast/holdfast.json")),
    ("ours: holdfast.jsonc", file("home/.config/holdfast/holdfast.jsonc")),
    ("host", host),
    *(
        (f"{where}/{name}", file(f"{where}/{name}"))
        for where in ("project", "project/sub")
        for name in ("opencode.json", "opencode.jsonc", "holdfast.json", "holdfast.jsonc")
    ),
    *(
        (f"{where}/{name}", file(f"{where}/{name}"))
        for where in ("project", "project/sub")
        for name in (
            ".opencode/config.toml",
            ".opencode/opencode.json",
            ".opencode/holdfast.json",
            ".holdfast/config.toml",
            ".holdfast/opencode.jsonc",
            ".holdfast/holdfast.json",
        )
    ),
    ("CONFIG_DIR", config_dir),
    ("CONFIG", config),
    ("CONFIG_CONTENT", content),
]


@pytest.mark.parametrize("below", range(len(LAYERS) - 1), ids=lambda i: f"{LAYERS[i][0]}<{LAYERS[i + 1][0]}")
def test_each_layer_lies_over_the_one_before(
    below: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two neighbours that say the same, the later one counts."""
    hosts: list[Any] = []
    for _, lay in LAYERS[below : below + 2]:
        value = "low/low" if not hosts and lay is LAYERS[below][1] else "high/high"
        found = lay(world, monkeypatch, value)
        hosts += [found] if found is not None else []

    assert world.load(remote=tuple(hosts)).config.small_model == "high/high"


def test_config_toml_in_the_project_itself_is_not_ours(world: World) -> None:
    """That name belongs to many tools; only configuration folders may have it."""
    write(world.project / "config.toml", 'model = "a/b"')

    assert world.load().value == {}


def test_an_mcp_server_that_leads_elsewhere_gets_no_secret_of_the_one_below(world: World) -> None:
    """An entry of the same name with another address or command stands alone; other values are merged."""
    headers, environment = {"authorization": "Bearer x"}, {"KEY": "x"}
    far = {"type": "remote", "url": "https://a.test/mcp", "headers": headers}
    near = {"type": "local", "command": ["a"], "environment": environment}
    write(world.ours / "holdfast.json", {"mcp": {"far": far, "near": near, "same": far, "off": near}})
    other = {"type": "remote", "url": "https://b.test/mcp"}
    swapped = {"type": "local", "command": ["b"]}
    same = {"type": "remote", "url": "https://a.test/mcp", "timeout": 9}
    write(
        world.project / "holdfast.json",
        {"mcp": {"far": other, "near": swapped, "same": same, "off": {"enabled": False}}},
    )
    loaded = world.load()

    assert loaded.value["mcp"] == {
        "far": other,
        "near": swapped,
        "same": {**far, "timeout": 9},
        "off": {**near, "enabled": False},
    }
    assert str(loaded.origins["mcp", "far", "url"]).startswith(str(world.project))
    assert not any("headers" in path for path in loaded.origins if path[:2] == ("mcp", "far"))


def test_values_are_merged_deeply_and_lists_replaced_but_two(world: World) -> None:
    """Objects key by key; plugins and instructions are joined without repeats; other lists replaced."""
    write(
        world.ours / "holdfast.json",
        {
            "compaction": {"auto": True, "reserved": 5},
            "instructions": ["a.md", "b.md"],
            "plugin": ["one", "./here.py"],
            "disabled_providers": ["x"],
        },
    )
    write(
        world.project / "opencode.json",
        {
            "compaction": {"reserved": 7},
            "instructions": ["b.md", "c.md"],
            "plugin": [["two", {"k": 1}], "one"],
            "disabled_providers": ["y"],
        },
    )
    loaded = world.load()

    assert loaded.value == {
        "compaction": {"auto": True, "reserved": 7},
        "instructions": ["a.md", "b.md", "c.md"],
        "plugin": ["one", str(world.ours / "here.py"), ["two", {"k": 1}]],
        "disabled_providers": ["y"],
    }
    assert [(each.entry, each.folder, each.contained) for each in loaded.instructions] == [
        ("a.md", world.ours, False),
        ("b.md", world.ours, False),
        ("c.md", world.project, False),
    ]


def test_every_value_knows_where_it_was_set(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """File and line, or the flag."""
    low = write(
        world.ours / "holdfast.jsonc", '{\n  // mine\n  "model": "a/b",\n  "compaction": {"auto": true}\n}'
    )
    high = write(
        world.project / ".opencode/config.toml", '\n[compaction]\nreserved = 3\n[agents.x]\nprompt = "p"'
    )
    agent = write(world.project / ".opencode/agent/team/y.md", "---\ndescription: d\n---\nDo.")
    monkeypatch.setenv("OPENCODE_DISABLE_AUTOCOMPACT", "1")
    monkeypatch.setenv("HOLDFAST_CONFIG_CONTENT", '{"share":\n"manual"}')

    assert {".".join(map(str, path)): str(origin) for path, origin in world.load().origins.items()} == {
        "model": f"{low}:3",
        "compaction.auto": "OPENCODE_DISABLE_AUTOCOMPACT",
        "compaction.reserved": f"{high}:3",
        "agent.x.prompt": f"{high}:5",
        "agent.team/y.description": f"{agent}:2",
        "agent.team/y.prompt": f"{agent}:1",
        "share": "HOLDFAST_CONFIG_CONTENT:1",
    }


def test_permissions_keep_their_order_over_layers(world: World) -> None:
    """A key keeps its first place; an action for a key replaces it; an object is laid over an action."""
    write(world.ours / "holdfast.json", {"permission": {"*": "ask", "bash": "deny", "edit": {"a": "allow"}}})
    write(
        world.project / "opencode.json",
        {"permission": {"edit": "deny", "bash": {"git *": "allow"}, "read": "allow"}},
    )
    permission = world.load().config.permission
    assert isinstance(permission, dict)

    assert list(permission.items()) == [
        ("*", "ask"),
        ("bash", {"*": "deny", "git *": "allow"}),
        ("edit", "deny"),
        ("read", "allow"),
    ]


def test_one_action_for_everything_replaces_what_was_said(world: World) -> None:
    """And a later object is laid over it."""
    write(world.opencode / "opencode.json", {"permission": {"bash": "allow"}})
    write(world.ours / "holdfast.json", {"permission": "deny"})
    assert world.load().config.permission == "deny"

    write(world.project / "opencode.json", {"permission": {"read": "allow"}})
    assert world.load().config.permission == {"*": "deny", "read": "allow"}


def test_documents_of_the_second_generation_are_read(world: World) -> None:
    """Plural names, rules in order, and what became of skills and compaction."""
    write(
        world.project / "opencode.json",
        {
            "agents": {
                "x": {"system": "p", "permissions": [{"action": "a", "resource": "b", "effect": "deny"}]}
            },
            "commands": {"c": {"template": "t"}},
            "providers": {"p": {"npm": "n"}},
            "permissions": [
                {"action": "bash", "resource": "*", "effect": "ask"},
                {"action": "*", "resource": "*", "effect": "deny"},
                {"action": "bash", "resource": "ls *", "effect": "allow"},
            ],
            "snapshots": False,
            "plugins": ["one"],
            "attachments": {"image": {"auto_resize": False}},
            "skills": ["./s", "https://skills.example"],
            "compaction": {"auto": False, "keep": {"tokens": 9}, "buffer": 4},
        },
    )
    loaded = world.load()

    assert loaded.warnings == ()
    assert loaded.value == {
        "agent": {
            "x": {"prompt": "p", "permission": [{"permission": "a", "pattern": "b", "action": "deny"}]}
        },
        "command": {"c": {"template": "t"}},
        "provider": {"p": {"npm": "n"}},
        "permission": [
            {"permission": "bash", "pattern": "*", "action": "ask"},
            {"permission": "*", "pattern": "*", "action": "deny"},
            {"permission": "bash", "pattern": "ls *", "action": "allow"},
        ],
        "snapshot": False,
        "plugin": ["one"],
        "attachment": {"image": {"auto_resize": False}},
        "skills": {"paths": ["./s"], "urls": ["https://skills.example"]},
        "compaction": {"auto": False, "preserve_recent_tokens": 9, "reserved": 4},
    }


def test_rules_in_order_join_with_settings_by_key(world: World) -> None:
    """Whichever comes later stands later, and so wins."""
    write(world.ours / "holdfast.json", {"permission": {"bash": {"~/x": "ask"}}})
    write(
        world.project / "opencode.json",
        {"permissions": [{"action": "bash", "resource": "*", "effect": "deny"}]},
    )

    assert world.load().value["permission"] == [
        {"permission": "bash", "pattern": "~/x", "action": "ask"},
        {"permission": "bash", "pattern": "*", "action": "deny"},
    ]


def test_older_names_become_newer_ones(world: World) -> None:
    """`mode` is a primary agent, `tools` stand before permissions, `autoshare` is a way to share."""
    write(
        world.project / "opencode.json",
        {
            "mode": {"fast": {"maxSteps": 3, "topP": 0.5, "reasoningEffort": "low"}},
            "tools": {"write": False, "bash": False, "x": True},
            "permission": {"bash": "ask"},
            "autoshare": True,
        },
    )
    loaded = world.load()

    assert loaded.value == {
        "agent": {
            "fast": {"steps": 3, "top_p": 0.5, "mode": "primary", "options": {"reasoningEffort": "low"}}
        },
        "permission": {"edit": "deny", "bash": "ask", "x": "allow"},
        "share": "auto",
    }
    assert {path[0] for path in loaded.origins} == {"agent", "permission", "share"}


@pytest.mark.parametrize(
    ("flag", "before", "after"),
    [
        ("AUTO_SHARE=1", {}, {"share": "auto"}),
        ("AUTO_SHARE=1", {"share": "disabled"}, {"share": "disabled"}),
        ("AUTO_SHARE=0", {}, {}),
        ("DISABLE_AUTOCOMPACT=true", {"compaction": {"auto": True}}, {"compaction": {"auto": False}}),
        ("DISABLE_PRUNE=1", {"compaction": {"prune": True}}, {"compaction": {"prune": False}}),
        ("DISABLE_PRUNE=0", {"compaction": {"prune": True}}, {"compaction": {"prune": True}}),
        (
            'PERMISSION={"bash": {"ls *": "allow"}, "edit": "deny"}',
            {"permission": {"bash": "ask"}},
            {"permission": {"bash": {"*": "ask", "ls *": "allow"}, "edit": "deny"}},
        ),
        ("DISABLE_PROJECT_CONFIG=1", {"model": "a/b"}, {}),
        ('CONFIG_CONTENT={"model": "c/d", /* last */}', {"model": "a/b"}, {"model": "c/d"}),
    ],
)
def test_flags_that_stand_for_settings(
    flag: str,
    before: dict[str, object],
    after: dict[str, object],
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each does what it says, over every layer."""
    write(world.project / "opencode.json", before)
    name, _, value = flag.partition("=")
    monkeypatch.setenv(f"OPENCODE_{name}", value)

    assert world.load().value == after


def test_flags_stand_over_the_settings_in_the_environment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONFIG_CONTENT is the last layer, and PERMISSION and the switches have the word after it."""
    content = {"permission": {"bash": "allow"}, "compaction": {"auto": True}}
    monkeypatch.setenv("HOLDFAST_CONFIG_CONTENT", json.dumps(content))
    monkeypatch.setenv("HOLDFAST_PERMISSION", '{"bash": "deny"}')
    monkeypatch.setenv("HOLDFAST_DISABLE_AUTOCOMPACT", "1")

    assert world.load().value == {"permission": {"bash": "deny"}, "compaction": {"auto": False}}


def test_own_settings_are_those_of_the_users_files_and_variables(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project has no word in them, whoever trusts it."""
    write(world.ours / "holdfast.json", {"username": "me", "backup": True})
    write(world.project / "holdfast.json", {"username": "stranger"})
    monkeypatch.setenv("HOLDFAST_CONFIG_CONTENT", '{"backup": false}')
    own = load.load_own(world.places)

    assert (own.username, own.backup) == ("me", False)


def test_a_disabled_project_brings_no_folders_either(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents and commands of the project are left out too."""
    write(world.project / ".opencode/agent/x.md", "Do.")
    write(world.ours / "agent/y.md", "Do.")
    monkeypatch.setenv("HOLDFAST_DISABLE_PROJECT_CONFIG", "1")

    assert list(world.load().value["agent"]) == ["y"]


def test_loading_is_quick(world: World) -> None:
    """A typical project is read in a few milliseconds (measured: about 2). The bar is generous, and counts
    processor time: other programs do not.
    """
    write(world.ours / "holdfast.json", {"model": "a/b", "permission": {"bash": "ask"}})
    write(world.project / "opencode.json", {"instructions": ["docs/*.md"], "agent": {"x": {"prompt": "p"}}})
    for number in range(5):
        write(world.project / f".opencode/agent/a{number}.md", "---\ndescription: d\n---\nDo.")
    world.load()
    took = []
    for _ in range(5):
        before = time.process_time()
        world.load()
        took.append(time.process_time() - before)

    assert min(took) < 0.02
