"""What the code imports is what setup.cfg installs, and what constraints.txt pins goes together."""

import ast
import re
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import boolbert

ROOT = Path(boolbert.__file__).parent
# Imported where an extra is there; elsewhere `needed` and `optional` (core/errors.py) tell which one is missing.
FILES_OF_EXTRAS = {"serve/page.py": "serve", "eval/boolean_ranking.py": "eval"}
FOR_CONTRIBUTORS = ("tests", "bench")
SETTINGS = ConfigParser(interpolation=None)
SETTINGS.read(ROOT / "setup.cfg", encoding="utf-8")
EXTRAS = sorted(SETTINGS["options.extras_require"])
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split())
PINNED = {canonicalize_name(name): version for name, version in PINS.items()}


def requirements(lines: str) -> list[Requirement]:
    return [Requirement(line) for line in lines.splitlines() if line.strip() and not line.startswith("#")]


INSTALLED = requirements(SETTINGS["options"]["install_requires"])


def of_extra(extra: str) -> Iterator[Requirement]:
    """An extra's requirements, and those of the extras that it names."""
    for requirement in requirements(SETTINGS["options.extras_require"][extra]):
        if requirement.name == "boolbert":
            for other in requirement.extras:
                yield from of_extra(other)
        else:
            yield requirement


def names(wanted) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in wanted}


ALWAYS = names(INSTALLED)
ANY = ALWAYS.union(*(names(of_extra(extra)) for extra in EXTRAS))
DISTRIBUTIONS = {
    module: {canonicalize_name(name) for name in distributions}
    for module, distributions in packages_distributions().items()
}


def called(node: ast.AST, name: str) -> list[str]:
    """The words that a function of this name is called with."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
        return [word.value for word in node.args if isinstance(word, ast.Constant)]
    return []


def modules_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [node.module or ""]
    return [*called(node, "import_module"), *called(node, "optional")][:1]


def extra_of(node: ast.AST) -> str | None:
    """The extra that a user is told of where a package is missing."""
    words = called(node, "optional")[2:] or called(node, "needed")[1:]
    return words[0] if words else None


def is_tried(node: ast.AST) -> bool:
    return isinstance(node, ast.Try) and any("ImportError" in ast.unparse(one.type or node) for one in node.handlers)


def imports(node: ast.AST, here: set[str], inside: set[str]) -> Iterator[tuple[str, int, set[str]]]:
    """What a part of a file imports, with the line and the packages that it may be of: here, and inside functions."""
    if isinstance(node, ast.With) and extra_of(node.items[0].context_expr):
        here = inside
    if is_tried(node):
        here = inside = ANY
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        here = inside
    for module in modules_of(node):
        yield module, node.lineno, here  # type: ignore[attr-defined]
    for child in ast.iter_child_nodes(node):
        yield from imports(child, here, inside)


def source_files() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        if not parts[0].startswith(".") and parts[0] not in ("build", "dist", "runs"):
            yield path


def test_every_import_is_of_a_package_that_is_installed():
    """Of one that everybody has, or of an extra that the file names to those who lack it."""
    own = {"boolbert", "speed", *(path.stem for path in (ROOT / "tests").iterdir())}  # what stands on sys.path there
    wrong, unknown = [], set()
    for path in source_files():
        file, tree = path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))
        extras = {extra_of(node) for node in ast.walk(tree)} - {None}
        inside = ALWAYS.union(*(names(of_extra(extra)) for extra in extras))
        here = ALWAYS | names(of_extra(extra)) if (extra := FILES_OF_EXTRAS.get(str(file))) else ALWAYS
        if file.parts[0] in FOR_CONTRIBUTORS:
            here = inside = ANY
        for module, line, packages in imports(tree, here, inside):
            top = module.partition(".")[0]
            if top in own or top in sys.stdlib_module_names:
                continue
            if top not in DISTRIBUTIONS:
                unknown.add(top)
            elif not DISTRIBUTIONS[top] & packages:
                wrong.append(f"{file}:{line}: {module}, which is of {', '.join(sorted(DISTRIBUTIONS[top]))}")
    assert not wrong, "\n".join(wrong)
    if unknown:
        pytest.skip(f"NOT TESTED: whether an extra brings {', '.join(sorted(unknown))}; make test-frameworks")


@cache
def wanted_by(name: str, extras: frozenset[str]) -> list[Requirement]:
    """What an installed package asks for on this machine."""
    found = [Requirement(line) for line in requires(name) or ()]
    holds = [{"extra": extra} for extra in extras or {""}]
    return [one for one in found if one.marker is None or any(one.marker.evaluate(given) for given in holds)]


@pytest.mark.parametrize("extra", [*EXTRAS, None])
def test_the_pins_go_together(extra):
    """pip looks for another version of everything, for many minutes, where a pin is not what another pin accepts."""
    todo = [("boolbert", requirement) for requirement in (of_extra(extra) if extra else INSTALLED)]
    seen, wrong, missing = set(), [], set()
    while todo:
        asking, requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if PINNED.get(name) is None or not requirement.specifier.contains(PINNED[name], prereleases=True):
            wrong.append(f"{asking} wants {requirement}, and constraints.txt has {PINNED.get(name, 'no pin for it')}")
        asked = (name, frozenset(requirement.extras))
        if asked in seen or name == "torch":  # what a build of torch for GPUs brings differs from machine to machine
            continue
        seen.add(asked)
        try:
            todo += [(name, below) for below in wanted_by(*asked)]
        except PackageNotFoundError:
            missing.add(name)
    assert not wrong, "\n".join(sorted(set(wrong)))
    if missing:
        pytest.skip(f"NOT TESTED: what {', '.join(sorted(missing))} of boolbert[{extra}] wants; make test-frameworks")


def test_torch_is_pinned_to_the_build_that_the_machines_have():
    assert PINS["torch"] == "2.13.0"


def test_a_space_installs_what_the_page_needs():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = SETTINGS["options"]["install_requires"].split() + SETTINGS["options.extras_require"]["serve"].split()
    assert [line for line in lines if not line.startswith("#")] == wanted


def test_the_page_is_installed_as_everything_else_is():
    """With the constraints: without, another version of pillow takes the place of the one that is pinned."""
    installing = [
        line
        for name in ("Makefile", ".ci/run")
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if re.search(r"\$\(INSTALL\)|pip install", line) and not line.startswith(("INSTALL", "#"))
    ]
    assert len(installing) >= 4
    assert [line for line in installing if " -c " not in line and "pip-audit" not in line] == []
