"""Plugins are found in order and loaded without harm."""

import sys
from pathlib import Path

import pytest

from holdfast.plugins.discovery import PluginContext, discover
from holdfast.plugins.dispatcher import Plugin, Trouble

CONTEXT = PluginContext(directory="/w", worktree="/w", project="p")


def found(
    *folders: Path, named: tuple[str, ...] = (), installed: bool = False
) -> tuple[list[Plugin], list[Trouble]]:
    """The plugins and what went wrong."""
    heard: list[Trouble] = []
    plugins = discover(CONTEXT, named=named, folders=folders, report=heard.append, installed=installed)
    return plugins, heard


def write(path: Path, text: str) -> Path:
    """A file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_plugin_that_cannot_be_loaded_is_told_and_the_others_are_loaded(tmp_path: Path) -> None:
    """Whatever it raises: a syntax error, its own error, a factory that fails."""
    write(tmp_path / "plugin" / "a.py", "def x(:")
    write(tmp_path / "plugin" / "b.py", "raise KeyError('gone')")
    write(tmp_path / "plugin" / "c.py", "def plugin(context): raise ValueError('no')")
    write(tmp_path / "plugin" / "d.py", "async def event(input, output): ...")
    write(tmp_path / "plugin" / "e.py", "import sys; sys.exit(4)")
    write(tmp_path / "plugin" / "f.py", "def plugin(context): raise SystemExit")

    plugins, heard = found(tmp_path)

    assert [plugin.name for plugin in plugins] == ["d"]
    assert [(each.plugin, each.message.split(":")[0]) for each in heard] == [
        ("a", "SyntaxError"),
        ("b", "KeyError"),
        ("c", "ValueError"),
        ("e", "SystemExit"),
        ("f", "SystemExit"),
    ]


def test_a_plugin_brings_tools(tmp_path: Path) -> None:
    """Those that are none are told, and the rest is taken; so is what cannot be registered yet."""
    write(tmp_path / "plugin" / "a.py", "tools = 5\nauth = object()")
    write(
        tmp_path / "plugin" / "b.py",
        "from holdfast.toolkit.declare import tool\n"
        "@tool(description='Tell the weather.')\n"
        "async def weather(context, city: str) -> str:\n"
        "    return city\n"
        "tools = [weather, print]\n",
    )
    write(tmp_path / "plugin" / "c.py", "import email as tools, email as provider")

    plugins, heard = found(tmp_path)

    assert [[tool.name for tool in plugin.tools] for plugin in plugins] == [[], ["weather"], []]
    assert [str(each) for each in heard] == [
        "plugin a, auth: to register one is not supported yet",
        "plugin a, tools: must be a sequence of tools",
        "plugin b, tools: builtin_function_or_method is no tool; declare it with @tool",
    ]


def test_a_factory_gets_the_context(tmp_path: Path) -> None:
    """What it answers has the hooks; without a factory the module itself has them."""
    write(tmp_path / "plugins" / "made.py", "def plugin(context): return context")
    write(tmp_path / "plugins" / "plain.py", "event = len")

    plugins, heard = found(tmp_path)

    assert heard == []
    assert plugins[0].hooks == CONTEXT
    assert plugins[1].hooks.event is len


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    """And a file that is named twice is loaded once."""
    one = write(tmp_path / "one" / "plugin" / "same.py", "word = 1")
    write(tmp_path / "two" / "plugin" / "same.py", "word = 2")

    plugins, _ = found(tmp_path / "one", tmp_path / "two", named=(str(one),))

    assert [(plugin.name, plugin.hooks.word) for plugin in plugins] == [("same", 1), ("same", 2)]


def test_a_module_is_named_and_what_is_no_python_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of another language gets a notice."""
    write(tmp_path / "holdfast_plugin_for_test.py", "word = 3")
    monkeypatch.syspath_prepend(tmp_path)

    plugins, heard = found(named=("holdfast_plugin_for_test", "@scope/plugin@1.2.3", "./x.ts"))

    assert [plugin.hooks.word for plugin in plugins] == [3]
    assert [each.plugin for each in heard] == ["@scope/plugin@1.2.3", "./x.ts"]
    del sys.modules["holdfast_plugin_for_test"]


def test_installed_plugins_are_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come first, by name."""
    write(tmp_path / "holdfast_installed_for_test.py", "def plugin(context): return context")
    write(
        tmp_path / "holdfast_installed_for_test-1.0.dist-info" / "entry_points.txt",
        "[holdfast.plugins]\nzebra = holdfast_installed_for_test:plugin\nant = holdfast_absent_for_test\n",
    )
    write(tmp_path / "holdfast_installed_for_test-1.0.dist-info" / "METADATA", "Name: x\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    plugins, heard = found(installed=True)

    assert [(plugin.name, plugin.hooks) for plugin in plugins] == [("zebra", CONTEXT)]
    assert [each.plugin for each in heard] == ["ant"]
    del sys.modules["holdfast_installed_for_test"]


def test_what_is_installed_meanwhile_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What packages say is kept only until one of their places changes."""
    monkeypatch.syspath_prepend(tmp_path)
    before = found(installed=True)[0]
    write(tmp_path / "holdfast_later_for_test.py", "def plugin(context): return context")
    write(
        tmp_path / "holdfast_later_for_test-1.0.dist-info" / "entry_points.txt",
        "[holdfast.plugins]\nlater = holdfast_later_for_test:plugin\n",
    )
    write(tmp_path / "holdfast_later_for_test-1.0.dist-info" / "METADATA", "Name: x\nVersion: 1.0\n")

    after = found(installed=True)[0]

    assert ([plugin.name for plugin in before], [plugin.name for plugin in after]) == ([], ["later"])
    del sys.modules["holdfast_later_for_test"]


def test_private_and_foreign_files_are_no_plugins(tmp_path: Path) -> None:
    """Nor are folders."""
    write(tmp_path / "plugin" / "_private.py", "raise KeyError")
    write(tmp_path / "plugin" / "script.js", "")
    (tmp_path / "plugin" / "folder.py").mkdir()

    assert found(tmp_path) == ([], [])
