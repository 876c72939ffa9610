"""What the page for contributors sends a reader to is there, and one file is enough where it says so."""

import json
import re
from pathlib import Path

import numpy as np
from own_documents import write_products

import boolbert
from boolbert.boolean.operators import SHORT_NAMES, TEMPLATES, VIOLATIONS
from boolbert.data import Quest
from boolbert.data.own import OwnDocuments, make_queries
from boolbert.data.rows import Row
from boolbert.data.sources import Source
from boolbert.data.tasks import quest_task
from boolbert.retrieval import metrics

ROOT = Path(boolbert.__file__).parent
ROWS = re.findall(
    r"^\| ([^|]+) \| `([\w/]+\.(?:py|tsv))` \| (.+) \|$",
    (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_every_question_has_an_answer():
    assert len(ROWS) >= 25
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


def test_a_template_needs_three_lines_of_one_file(tmp_path, monkeypatch):
    template = "_ or _ but not _"
    monkeypatch.setitem(TEMPLATES, template, ("or", "not"))
    monkeypatch.setitem(SHORT_NAMES, template, "A or B not C")
    monkeypatch.setitem(VIOLATIONS, template, (((1, None, 1), (None, 1, 1)),))
    documents = [{"title": title, "text": title} for title in ("red", "blue", "old red", "old blue")]
    query = {
        "query": "red or blue, but not old",
        "docs": ["red", "blue"],
        "original_query": "<mark>red</mark> or <mark>blue</mark> but not <mark>old</mark>",
        "metadata": {"template": template, "atoms": ["red", "blue", "old"]},
    }
    for name, rows in (("documents", documents), ("test", [query])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "atoms.json").write_text(json.dumps({"red": [0, 2], "blue": [1, 3], "old": [2, 3]}))
    task = quest_task(tmp_path, "test")
    assert task.questions[0].operators == ("or", "not")
    assert [part.operator for part in task.questions[0].parts] == ["", "or", "not"]
    assert task.violating[0].tolist() == task.negated[0].tolist() == [2, 3]
    found = metrics.quest_metrics(task, np.array([[0, 2, 1, 3]]))
    assert found["violations"].tolist() == [0.5]


def test_made_queries_keep_to_the_templates_they_have_words_for(tmp_path, monkeypatch):
    monkeypatch.setitem(TEMPLATES, "_ or _ but not _", ("or", "not"))
    shop = OwnDocuments(write_products(tmp_path / "shop.csv"), progress=False)
    assert make_queries(shop, tmp_path / "made", queries=14).train == 14


def test_a_source_is_all_that_a_data_format_needs():
    class Lines(Source):
        """A query, a bar, and its answers; documents are the answers."""

        name = "lines"
        text = "islands | Iceland, Japan"

        def tables(self):
            return ["documents", "test"]

        def rows(self, table, *, progress=True, bad=None):
            query, answers = self.text.split(" | ")
            titles = answers.split(", ")
            rows = [{"title": title, "text": ""} for title in titles]
            rows = rows if table == "documents" else [{"query": query, "docs": titles}]
            yield from (Row(self.name, number, values) for number, values in enumerate(rows, start=1))

    quest = Quest(Lines())
    assert [row.tolist() for row in quest.gold("test")] == [[0, 1]]
