"""How far a query goes: the files that it enters, their patterns, and who may import the rules that make labels."""

import ast
import re
import sys
import threading
from pathlib import Path

import boolbert
from boolbert.search import BoolSearcher

ROOT = Path(boolbert.__file__).resolve().parent
QUERY = "island countries that are not monarchies or republics, with beaches"
PATTERN = re.compile(r"\b(?:re\.(?:compile|search|match|fullmatch|sub|subn|findall|finditer|split)|pattern)\(")
# The rooms in which a query is read, searched and answered, and measured.
ROOMS = ("search", "retrieval", "integrations", "serve", "eval", "boolean")
MOST_FILES, MOST_PATTERNS, MOST_ENGLISH = 28, 53, 6
# Those that hold English words, of the files that a query enters.
ENGLISH = {"boolean/clauses.py", "boolean/denials.py", "boolean/languages.py", "boolean/search_box.py"}
ENGLISH |= {"boolean/bounds.py", "boolean/numbers.py", "boolean/dates.py", "boolean/around_bounds.py"}
ENGLISH |= {"retrieval/words.py", "search/number_fields.py", "search/number_filters.py"}


def entered():
    """The files of the package that a search enters, once everything is loaded."""
    searcher, files = BoolSearcher(), set()
    searcher.search(QUERY)

    def note(frame, event, _):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(f"{ROOT}/") and "site-packages" not in name:
            files.add(str(Path(name).relative_to(ROOT)))

    before = sys.getprofile()
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        searcher.search(QUERY.replace("beaches", "a coast"))
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return files


def test_a_query_enters_few_files_with_few_patterns():
    files = sorted(entered())
    patterns = {file: len(PATTERN.findall((ROOT / file).read_text(encoding="utf-8"))) for file in files}
    assert "search/query_reader.py" in files  # else nothing was noted
    assert "search/rank.py" in files
    assert len(files) <= MOST_FILES, files
    assert sum(patterns.values()) <= MOST_PATTERNS, patterns
    assert len(ENGLISH.intersection(files)) <= MOST_ENGLISH, files


def imported(file):
    """The modules that a file imports, by their full names."""
    package = ("boolbert", *file.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module])))
            yield from (module, *(f"{module}.{name.name}" for name in node.names))


def test_what_searches_imports_no_rules_that_make_labels():
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    found = [f"{file}: {name}" for file in files for name in imported(file) if name.startswith("boolbert.data.labels")]
    assert len(files) > 100
    assert found == []
    assert any(name.startswith("boolbert.data.labels") for name in imported(ROOT / "train" / "query_reader.py"))
