"""The names that `holdfast` and `holdfast.testing` offer: each is loaded when it is used, and none before."""

import ast
import importlib
import json
import pydoc
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import holdfast
import holdfast.testing
from holdfast import errors
from tests.house.parsing import parsed

DOORS = [holdfast, holdfast.testing]


def type_checked(module: ModuleType) -> dict[str, str]:
    """What a type checker is shown: names and the modules that they come from."""
    assert module.__file__ is not None
    tree = parsed(Path(module.__file__))
    blocks = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


@pytest.mark.parametrize("door", DOORS)
def test_type_checkers_editors_and_programs_find_the_same_names(door: ModuleType) -> None:
    """The imports for type checkers, `__all__`, `dir`, and what is loaded at run time."""
    offered = set(door.__all__) - {"__version__"}
    loaded = {name: getattr(door, name) for name in offered}

    assert type_checked(door) == vars(door)["_MODULE"]
    assert offered == set(vars(door)["_MODULE"])
    assert dir(door) == sorted(door.__all__)
    assert [
        name
        for name, module in vars(door)["_MODULE"].items()
        if loaded[name] is not getattr(importlib.import_module(module), name)
    ] == []


@pytest.mark.parametrize("door", DOORS)
def test_no_name_is_that_of_a_module(door: ModuleType) -> None:
    """Importing `holdfast.x` sets the attribute `x` of the package, in the place of a name."""
    assert door.__file__ is not None
    here = Path(door.__file__).parent
    below = {path.stem for path in here.glob("*.py")} | {
        path.parent.name for path in here.glob("*/__init__.py")
    }

    assert below & set(door.__all__) == set()


def test_every_error_is_offered() -> None:
    """What Holdfast raises can be caught without knowing where it stands."""
    raised = [name for name, each in vars(errors).items() if isinstance(each, type)]

    assert [name for name in raised if getattr(holdfast, name, None) is not getattr(errors, name)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="module 'holdfast' has no attribute 'opne'"):
        _ = holdfast.opne  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'holdfast.testing' has no attribute 'Stepp'"):
        _ = holdfast.testing.Stepp  # type: ignore[attr-defined]


@pytest.mark.ci
def test_help_shows_the_names() -> None:
    """Functions with their arguments, classes with their words."""
    text = pydoc.render_doc(holdfast, renderer=pydoc.plaintext)  # type: ignore[attr-defined]

    for line in ("    run_sync(prompt: ", "    open(store: ", "    tool(*, name: ", "    class ToolContext("):
        assert line in text


def test_the_package_loads_nothing_until_a_name_is_used() -> None:
    """Every command pays for what `import holdfast` loads, and an error class costs no engine."""
    look = (
        "import sys, json, holdfast; first = sorted(n for n in sys.modules if n.startswith('holdfast'));"
        "holdfast.NotFound; then = sorted(n for n in sys.modules if n.startswith('holdfast'));"
        "print(json.dumps([first, then, 'asyncio' in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60)

    own = ["holdfast", "holdfast.version"]
    assert json.loads(ran.stdout) == [own, sorted([*own, "holdfast.errors"]), False]
