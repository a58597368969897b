"""Finds and loads plugins.

They are, in this order: installed ones (entry points of the group `holdfast.plugins`), those that the config
names, and Python files in the `plugin/` and `plugins/` folders of trusted config folders. The files in
`tool/` and `tools/` beside them bring the tools that they declare, and nothing else.

A plugin's code runs when it is loaded, so what comes here must already be trusted: `config/` drops the
plugins of folders that are not trusted. A module offers `plugin`, a function that gets a `PluginContext` and
answers an object with hooks; a module without it is itself that object. Its attribute `tools`, a sequence of
`holdfast.Tool`, are tools that it brings, and `sources`, a sequence of `holdfast.ContextSource`, what it
gives the model. To register ways of signing in (`auth`) or providers (`provider`) is reported as not
supported. Plugins written in JavaScript are named and left alone. What cannot be loaded costs a notice,
nothing else.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec

from holdfast.context.source import ContextSource
from holdfast.person import small_file
from holdfast.plugins.dispatcher import Plugin, Trouble
from holdfast.toolkit.declare import Tool

GROUP = "holdfast.plugins"
FOLDERS = ("plugin", "plugins")
TOOL_FOLDERS = ("tool", "tools")
UNSUPPORTED = ("auth", "provider")

Source = Callable[[Path], bytes | None]


class PluginContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin knows about where it runs."""

    directory: str
    worktree: str
    project: str


def discover(
    context: PluginContext,
    *,
    named: Sequence[str],
    folders: Sequence[Path],
    report: Callable[[Trouble], None],
    source: Source = small_file.read,
    installed: bool = True,
) -> list[Plugin]:
    """The plugins in order: installed ones by name, those that the config names, then files by path.

    `source` reads a file: of a project the bytes that the user trusts, whatever is there by now.
    """
    found: list[Plugin] = []
    loads: list[tuple[str, str, Callable[[], Any]]] = []
    if installed:
        loads += [(entry.name, f"entry point {entry.value}", entry.load) for entry in _entry_points()]
    for name in named:
        loads += _named(name, report, source)
    for path in _files(folders, FOLDERS):
        loads.append((path.stem, str(path), partial(_module, path, source)))
    for path in _files(folders, TOOL_FOLDERS):
        loads.append((path.stem, str(path), partial(_tool_file, path, source)))
    seen: set[str] = set()
    for name, origin, load in loads:
        if origin in seen:
            continue
        seen.add(origin)
        try:
            hooks = _hooks(load(), context)
            tools = _tools(name, hooks, report)
            sources = _sources(name, hooks, report)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
            report(Trouble(name, "load", _line(f"{type(error).__name__}: {error} ({origin})")))
        else:
            found.append(Plugin(name, origin, hooks, tools, sources))
    return found


def _entry_points() -> Sequence[Any]:
    return _entry_points_in(tuple((each, _changed_ns(each)) for each in map(os.path.abspath, sys.path)))


@lru_cache(maxsize=1)
def _entry_points_in(places: tuple[tuple[str, int], ...]) -> Sequence[Any]:
    """Of all packages in these places. To read what each of them says of itself takes milliseconds on the
    event loop, and every directory that is worked in asks. What is installed meanwhile changes its place's
    time.
    """
    from importlib.metadata import entry_points

    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _changed_ns(place: str) -> int:
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0


def _named(
    name: str, report: Callable[[Trouble], None], source: Source
) -> Iterable[tuple[str, str, Callable[[], Any]]]:
    """A plugin that the config names: a Python file by its absolute path, or a module."""
    path = name.removeprefix("file://")
    if path.startswith("/") and path.endswith(".py"):
        yield Path(path).stem, path, partial(_module, Path(path), source)
    elif all(word.isidentifier() for word in name.split(".")):
        yield name, f"module {name}", partial(importlib.import_module, name)
    else:
        report(Trouble(_line(name), "load", "not a Python module or file, so it is not run"))


def _files(folders: Sequence[Path], names: Sequence[str]) -> list[Path]:
    return [
        path
        for folder in folders
        for name in names
        for path in sorted((folder / name).glob("*.py"))
        if path.is_file() and not path.name.startswith(("_", "."))
    ]


def _module(path: Path, source: Source) -> ModuleType:
    """A file as a module of its own, whatever others have its name. Compiled here, since Python would rather
    take compiled code that lies beside the file, which nobody compared with anything.
    """
    data = source(path)
    if data is None:
        raise ImportError("it is not there, or not what was trusted")
    real = os.path.realpath(path)
    name = f"holdfast_plugin_{sha256(real.encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = real
    sys.modules[name] = module  # Dataclasses and pickling look their module up there.
    try:
        exec(compile(data, real, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - a plugin is code
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _tool_file(path: Path, source: Source) -> SimpleNamespace:
    """What a file of tools declares: every tool among its names, each once."""
    declared = {id(each): each for each in vars(_module(path, source)).values() if isinstance(each, Tool)}
    if not declared:
        raise ImportError("it declares no tool; declare one with @holdfast.tool")
    return SimpleNamespace(tools=tuple(declared.values()))


def _hooks(loaded: Any, context: PluginContext) -> Any:
    make = getattr(loaded, "plugin", None) if isinstance(loaded, ModuleType) else loaded
    return make(context) if callable(make) else loaded


def _tools(name: str, hooks: Any, report: Callable[[Trouble], None]) -> tuple[Tool, ...]:
    """The tools of a plugin. What is none is reported, and the others are taken."""
    for word in UNSUPPORTED:
        # A module of that name beside others is no registration.
        if not isinstance(getattr(hooks, word, None), ModuleType | None):
            report(Trouble(name, word, "to register one is not supported yet"))
    brought = getattr(hooks, "tools", None)
    if brought is None or isinstance(brought, ModuleType):
        return ()
    if not isinstance(brought, Sequence):
        report(Trouble(name, "tools", "must be a sequence of tools"))
        return ()
    for each in brought:
        if not isinstance(each, Tool):
            report(Trouble(name, "tools", f"{_line(type(each).__name__)} is no tool; declare it with @tool"))
    return tuple(each for each in brought if isinstance(each, Tool))


def _sources(name: str, hooks: Any, report: Callable[[Trouble], None]) -> tuple[ContextSource[Any], ...]:
    """The Context Sources of a plugin. What is none, or has a key of ours, is reported and left out."""
    brought = getattr(hooks, "sources", None)
    if brought is None or isinstance(brought, ModuleType):
        return ()
    if not isinstance(brought, Sequence):
        report(Trouble(name, "sources", "must be a sequence of context sources"))
        return ()
    found = []
    for each in brought:
        if not isinstance(each, ContextSource):
            report(Trouble(name, "sources", f"{_line(type(each).__name__)} is no context source"))
        elif each.key.startswith("core/"):
            report(Trouble(name, "sources", f"{_line(each.key)} belongs to Holdfast; use a name of your own"))
        else:
            found.append(each)
    return tuple(found)


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
