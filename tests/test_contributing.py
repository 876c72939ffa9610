"""Every file and name that the page for contributors sends a reader to is there."""

import re
from pathlib import Path

import boolbert

ROOT = Path(boolbert.__file__).parent
ROWS = re.findall(
    r"^\| ([^|]+) \| `([\w/]+\.py)` \| (.+) \|$",
    (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_ten_questions_have_an_answer_each():
    assert len(ROWS) == 10
    for _, file, text in ROWS:
        files = [file, *re.findall(r"`([\w/]+\.py)`", text)]
        # A file without its folder stands beside the one of the row.
        paths = [path if (path := ROOT / name).exists() else (ROOT / file).parent / name for name in files]
        sources = "".join(path.read_text(encoding="utf-8") for path in paths)
        for name in re.findall(r"`([A-Za-z_]+)(?:\([^`]*\))?`", text):
            assert re.search(rf"\b{name}\b", sources), f"{name} is not in {files}"


def test_the_house_is_drawn_as_it_stands():
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "bench"}
    assert all(f"{folder}/" in text for folder in folders)
