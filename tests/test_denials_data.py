"""The documents that say what they lack: what is true of them is known, and their words say it."""

import json
import re
from collections import Counter

import pytest

from boolbert.boolean import split_clauses
from boolbert.data.denials import denial_atoms, denial_queries, denials_folder, descriptions
from boolbert.data.denials.folder import main
from boolbert.data.quest import Quest
from boolbert.eval.denials import count_wrong, denial_task, measure, table

SPLITS = ("dev", "test")


@pytest.mark.parametrize("split", SPLITS)
def test_a_third_of_the_statements_deny(split):
    documents = descriptions(split)
    ways = Counter(way for document in documents for way in document.statements.values())
    assert len(documents) >= 300
    assert 0.3 < ways["denies"] / ways.total() < 0.45
    lengths = [len(document.text.split()) for document in documents]
    assert min(lengths) >= 40
    assert max(lengths) <= 85
    assert len({document.title for document in documents}) == len(documents)
    assert not [document.text for document in documents if re.search(r"[{}]|\.\.| ,|\ba [aeio]", document.text)]


@pytest.mark.parametrize("split", SPLITS)
def test_queries_of_three_kinds_with_enough_right_documents_to_fill_the_first_ten(split):
    queries = denial_queries(split)
    counts = Counter(query["metadata"]["domain"] for query in queries)
    assert counts["denied"] >= 30
    assert min(counts["silent"], counts["near"]) >= 15
    atoms = denial_atoms(split)
    for query in queries:
        kind, having = (set(atoms[name]) for name in query["metadata"]["atoms"])
        assert having < kind
        assert len(query["docs"]) == len(kind - having) >= 10
        assert len(having) >= 10


def test_what_nobody_denies_is_denied_nowhere():
    for split in SPLITS:
        silent = {q["metadata"]["atoms"][-1] for q in denial_queries(split) if q["metadata"]["domain"] == "silent"}
        for document in descriptions(split):
            for thing, way in document.statements.items():
                assert way == "has" or f"{document.kind}: {thing}" not in silent


def test_a_near_miss_counts_as_the_table_says():
    """Who may not eat nuts is not served by "may contain traces of nuts"; a restaurant across the street is not the
    hotel's."""
    bars = [d for d in descriptions("dev") if d.kind == "snack bars" and d.statements.get("nuts") == "near"]
    assert bars
    assert all("nuts" in bar.things and "may contain traces of nuts" in bar.text.lower() for bar in bars)
    hotels = [d for d in descriptions("dev") if d.kind == "hotels" and d.statements.get("restaurant") == "near"]
    assert hotels
    assert all("restaurant" not in hotel.things and "across the street" in hotel.text for hotel in hotels)


def test_dev_and_test_share_no_document_and_no_wording():
    dev, test = (descriptions(split) for split in SPLITS)
    assert not {document.title for document in dev} & {document.title for document in test}
    sentences = [{sentence for d in each for sentence in d.text.split(". ")} for each in (dev, test)]
    assert not sentences[0] & sentences[1]
    assert not {q["query"] for q in denial_queries("dev")} & {q["query"] for q in denial_queries("test")}


def test_the_reader_finds_most_of_what_the_documents_of_dev_deny():
    found, expected = 0, 0
    for document in descriptions("dev"):
        denied = sum(way == "denies" for way in document.statements.values())
        spans = [document.text[a:b] for clause in split_clauses(document.text) for a, b in clause.denied]
        found += min(denied, sum(1 + len(re.findall(r" (?:or|and) ", span)) for span in spans))
        expected += denied
    assert found / expected > 0.95


def test_it_opens_like_other_data(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("BOOLBERT_CACHE", str(tmp_path / "cache"))
    main(["--output", str(tmp_path)])
    assert "320 documents, 64 queries" in capsys.readouterr().out
    for split in SPLITS:
        quest = Quest(tmp_path / split, strict=True, progress=False)
        assert quest.splits == [split]
        assert [len(rows) for rows in quest.gold(split)] == [len(query["docs"]) for query in denial_queries(split)]
    assert json.loads((denials_folder("dev") / "atoms.json").read_text()) == denial_atoms("dev")


def test_counting_what_is_wrong_in_the_first_ten():
    """The best ranking has nothing wrong, the worst ten excluded documents."""
    task, kinds = denial_task("dev")
    gold = [sorted(kind - set(rows.tolist())) for kind, rows in zip(kinds, task.negated, strict=True)]
    best = measure(lambda questions, k: [rows[:k] for rows in gold], task, kinds)
    assert best.excluded.sum() == best.off_topic.sum() == 0
    worst = measure(lambda questions, k: [rows[:k] for rows in task.negated], task, kinds)
    assert (worst.excluded == 10).all()
    elsewhere = [[row for row in range(320) if row not in kind][:10] for kind in kinds]
    assert (count_wrong(elsewhere, task.negated, kinds).off_topic == 10).all()
    assert "320" in table({"worst": worst}, task)
