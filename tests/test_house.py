"""Who imports whom: the rules of the house, read off the source. Imports inside functions count like any other."""

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import find_spec, resolve_name
from pathlib import Path

import pytest

import boolbert

ROOT = Path(boolbert.__file__).parent.resolve()
SKIPPED = {"tests", "bench", "build", "dist", "runs"}

# Files at the root belong to these rooms; a folder is a room of its own.
FILES = {
    "configuration_boolbert": "model",
    "composing_boolbert": "model",
    "modeling_boolbert": "model",
    "reading_boolbert": "model",
    "sentence_boolbert": "sentence",
    "hub_upload": "hub",
    "app": "app",
    "__init__": "package",
}
# What each room may import besides itself.
ALLOWED = {
    "core": {"model"},
    "model": set(),
    "package": {"model"},
    "sentence": {"model"},
    "boolean": {"core"},
    "data": {"core", "boolean"},
    "retrieval": {"core", "boolean", "data", "model", "sentence", "package"},
}
ENGINE = {"retrieval", *ALLOWED["retrieval"]}
ALLOWED |= {
    "search": ENGINE,
    "eval": {*ENGINE, "search"},
    "train": {*ENGINE, "search", "eval"},
    "hub": ENGINE,
    "serve": {*ENGINE, "search"},
    "integrations": {*ENGINE, "search"},
    "app": {*ENGINE, "search", "serve"},
    "cli": {*ENGINE, "search", "serve", "eval", "train", "hub"},
}
HUB_FILES = tuple(f"{name}_boolbert" for name in ("configuration", "reading", "composing", "modeling", "sentence"))


def source_files():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        if not parts[0].startswith(".") and parts[0] not in SKIPPED and not (ROOT / parts[0] / "pyvenv.cfg").exists():
            yield path


def module_of(path):
    """
    >>> module_of(ROOT / "data" / "__init__.py")
    ('data',)
    """
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def room_of(module):
    return module[0] if len(module) > 1 or (ROOT / module[0]).is_dir() else FILES[module[0]]


MODULES = {module_of(path): path for path in source_files() if path != ROOT / "__init__.py"}


@cache
def imports_of(path):
    """The modules of this package that a file imports, with their lines; what only types need is left out."""
    return list(_imports_of(path))


def _imports_of(path):
    package = ".".join(("boolbert", *path.relative_to(ROOT).parent.parts))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    for_types = {
        inner
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in nodes:
        if node in for_types or not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            names = [f"{base}.{name}" for name in names]
        for first, *module in (name.split(".") for name in names):
            while module and tuple(module) not in MODULES:  # a name inside a module
                module.pop()
            if first == "boolbert":
                yield tuple(module), node.lineno


def test_every_room_imports_only_what_stands_below_it():
    wrong = []
    for path in source_files():
        own = room_of(module_of(path) or ("__init__",))
        for module, line in imports_of(path):
            room = room_of(module) if module else "package"
            if room != own and room not in ALLOWED[own]:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {own} must not import {room}")
    assert not wrong, "\n".join(wrong)


def test_no_circle():
    """A module of a folder imports the folder's __init__ by being imported; that is no circle."""
    graph = {
        module: {
            target
            for target, _ in imports_of(path)
            if target and target != module and target != module[: len(target)] and module != target[: len(module)]
        }
        for module, path in MODULES.items()
    }
    TopologicalSorter(graph).prepare()  # a CycleError names the circle


@pytest.mark.parametrize("name", [*HUB_FILES, "hub/modeling_document_reader"])
def test_hub_files_import_their_siblings_and_few_packages(name):
    """They are published as they are, where nothing of this package is installed. transformers refuses a model whose
    files import what is not installed, unless that is tried."""
    from transformers.dynamic_module_utils import get_imports, get_relative_imports

    needed = {"torch", "transformers", "numpy", "sentence_transformers"}
    assert set(get_imports(ROOT / f"{name}.py")) - set(sys.stdlib_module_names) <= needed
    assert set(get_relative_imports(ROOT / f"{name}.py")) <= set(HUB_FILES)


def test_what_processes_are_forked_from_can_be_imported():
    """A module that is missing ends the preloading without a word, and each process then imports all by itself."""
    text = (ROOT / "tests" / "forked_from.py").read_text(encoding="utf-8")
    names = re.findall(r'"([\w.]+)"', text.partition("MODULES = [")[2].partition("]")[0])
    assert len(names) > 10
    assert [name for name in names if not name.startswith("faults.") and find_spec(name) is None] == []
