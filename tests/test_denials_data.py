"""The documents that say what they lack: what is true of them is known, and their words say it."""

import gzip
import json
import re
from collections import Counter

import pytest

from boolbert.boolean import split_clauses
from boolbert.cli import main
from boolbert.data import Quest
from boolbert.data.embedded import denials_folder

SPLITS = {split: Quest(denials_folder(split), strict=True, progress=False) for split in ("dev", "test")}


def rows_of(split, name):
    """The documents of an atomic set."""
    return {SPLITS[split].corpus[row] for row in SPLITS[split].atoms[name]}


@pytest.mark.parametrize("split", SPLITS)
def test_queries_of_three_kinds_with_enough_right_documents_to_fill_the_first_ten(split):
    queries = SPLITS[split].queries(split)
    counts = Counter(query.domain for query in queries)
    assert counts["denied"] >= 30
    assert min(counts["silent"], counts["near"]) >= 15
    for query in queries:
        kind, having = (rows_of(split, name) for name in query.atoms)
        assert having < kind
        assert set(query.docs) == {document.title for document in kind - having}
        assert min(len(query.docs), len(having)) >= 10


def test_a_near_miss_counts_as_the_page_says():
    """Who may not eat nuts is not served by "may contain traces of nuts"; a restaurant across the street is not the
    hotel's."""
    bars = {bar for bar in rows_of("dev", "snack bars") if "may contain traces of nuts" in bar.text.lower()}
    assert bars
    assert bars <= rows_of("dev", "snack bars: nuts")
    hotels = {hotel for hotel in rows_of("dev", "hotels") if "across the street" in hotel.text}
    assert hotels
    assert not hotels & rows_of("dev", "hotels: restaurant")


def test_dev_and_test_share_no_document_and_no_wording():
    dev, test = (list(quest.documents()) for quest in SPLITS.values())
    assert not {document.title for document in dev} & {document.title for document in test}
    sentences = [{sentence for d in each for sentence in d.text.split(". ")} for each in (dev, test)]
    assert not sentences[0] & sentences[1]
    asked = [{query.query for query in quest.queries(split)} for split, quest in SPLITS.items()]
    assert not asked[0] & asked[1]


def test_the_reader_finds_most_of_what_the_documents_of_dev_deny():
    found, expected = 0, 0
    with gzip.open(denials_folder("dev") / "documents.jsonl.gz", "rt", encoding="utf-8") as lines:
        for document in map(json.loads, lines):
            text, denied = document["text"], len(document["denies"])
            spans = [text[a:b] for clause in split_clauses(text) for a, b in clause.denied]
            found += min(denied, sum(1 + len(re.findall(r" (?:or|and) ", span)) for span in spans))
            expected += denied
    assert found / expected > 0.95


@pytest.mark.parametrize(
    ("name", "tables"), [("countries", {"": "train dev test"}), ("denials", {"dev": "dev", "test": "test"})]
)
def test_a_command_writes_the_data(tmp_path, capsys, name, tables):
    output = tmp_path / "a" / "b"
    assert main(["data", name, "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    for folder, splits in tables.items():
        here = SPLITS.get(folder) or Quest(progress=False)
        written = Quest(output / folder, progress=False)
        assert list(written.documents()) == list(here.documents())
        assert f"{folder}/documents.jsonl: {len(here.corpus)} rows".removeprefix("/") in printed
        assert (written.splits, written.atoms.keys()) == (splits.split(), here.atoms.keys())
        assert all(written.queries(split) == here.queries(split) for split in written.splits)
    (tmp_path / "file").write_text("")
    assert main(["data", name, "--output", str(tmp_path / "file")]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "file" in error
