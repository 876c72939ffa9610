"""Documents that were cut into passages: what is excluded is asked of the document."""

import json

import numpy as np
import pytest
from framework_fixtures import bag_of_words
from search_fixtures import write_documents

from boolbert.core.errors import RetrievalError
from boolbert.data.own import OwnDocuments, Passages
from boolbert.data.own.exclusions import Exclusion
from boolbert.retrieval.evidence import Evidence, unit_length
from boolbert.retrieval.functions import function_model
from boolbert.retrieval.index import PASSAGES, Index, write_records
from boolbert.retrieval.passages import exclude_by_document
from boolbert.retrieval.records import Record
from boolbert.retrieval.scoring import Question, first_stage, word_scores
from boolbert.retrieval.stores import FileStore
from boolbert.retrieval.words import words_of
from boolbert.search import BoolSearcher, build_index, load_model
from boolbert.search.calibrating import calibrate
from boolbert.search.query_reader import read

TEXTS = [
    "Alba has a beach.",  # three towns in two passages each
    "The metro of Alba runs all night. It has a metro.",
    "Brit has a sandy beach.",
    "The museum of Brit is closed.",
    "Cald has a beach too.",
    "Cald comes without a metro.",
    "Dorn has a beach and a metro.",  # and one in one
]
WHOLES = np.array([0, 0, 1, 1, 2, 2, 3])


def encode(texts):
    return unit_length(bag_of_words(texts, lambda text: words_of(text) or ["nothing"]))


def test_a_passage_loses_what_its_document_loses_most(tmp_path):
    Evidence.build(tmp_path / "evidence", TEXTS, encode, corpus="", model="", progress=False)
    evidence, vectors = Evidence(tmp_path / "evidence", "", ""), encode(TEXTS)
    rows = np.array([0, 2, 4, 6])  # the passages with a beach
    for query, changed in (("towns with a beach but without a metro", True), ("towns with a beach", False)):
        question = Question.of(read(query), encode)
        words = word_scores(evidence, question)
        asked = {"strength": 1.0, "words": words}
        scores = first_stage(evidence, question, rows, np.zeros(4), vectors[rows], **asked)
        found = exclude_by_document(evidence, question, rows, scores, WHOLES, lambda some: vectors[some], **asked)
        assert (found[0] < scores[0] - 0.2) == changed  # Alba has a metro, in another passage
        assert found[[1, 3]] == pytest.approx(scores[[1, 3]])  # Brit has none, Dorn's is in the same passage
        assert found[2] == pytest.approx(scores[2])  # that Cald denies it takes nothing away
        if changed:
            assert scores[0] > scores[3]
            assert found[0] < min(found[[1, 2]])


def test_an_index_knows_which_passages_belong_together(tmp_path, run_once):
    long = " ".join(f"Sentence number {number} is about a town." for number in range(60))
    rows = [
        {"title": "One", "text": long},
        {"title": "Short", "text": "A text."},
        {"title": "One", "text": long + " x"},
    ]
    model = load_model(run_once())
    index = build_index(OwnDocuments(rows, passages=Passages()), tmp_path / "index", model, progress=False)
    titles = [document.title for document in index.documents()]
    ends = titles.index("Short")
    assert index.wholes.tolist() == [0] * ends + [1] + [2] * (len(titles) - ends - 1)
    assert FileStore(tmp_path / "index").snapshot().wholes.tolist() == index.wholes.tolist()
    (tmp_path / "index" / PASSAGES).write_bytes(b"")
    with pytest.raises(RetrievalError, match=r"passages\.npy: is damaged"):
        assert Index(tmp_path / "index").wholes is None
    docs = write_documents(tmp_path / "docs.jsonl")
    assert build_index(docs, tmp_path / "other", model, progress=False).wholes is None


@pytest.mark.parametrize("query", ["towns with a beach but without a metro", "towns beach -metro"])
@pytest.mark.parametrize("violations", [None, 0.2])
def test_search_asks_the_document_and_not_the_passage(tmp_path, query, violations):
    """Alba's metro stands in another passage than its beach."""
    model = function_model(bag_of_words, "bag-of-words")
    rows = [{"title": f"Town {number}", "text": towns(number)} for number in range(12)]
    own = OwnDocuments(rows, passages=Passages(words=40, overlap=5), progress=False)
    searcher = BoolSearcher(model, build_index(own, tmp_path / "index", model, progress=False))
    titles = [document.title for document in searcher.index.documents()]
    assert len(titles) >= 24
    has = frozenset(row for row, title in enumerate(titles) if int(title.split()[1].rstrip(",")) % 3 == 0)
    if violations is not None:
        words = ("old", "new", "quiet", "large", "small")
        calibrate(searcher, [Exclusion(f"{word} towns without a metro", has) for word in words], progress=False)
    found = searcher.search(query, 10, violations=violations)
    assert not {hit.row for hit in found[:5]} & has
    if violations is not None or "-" in query:
        assert not {hit.row for hit in found} & has


def towns(number):
    """A text of two passages. Every third town has a metro, the next one denies it, the last one is silent."""
    beach = f"The town has a beach with sand and a long pier where people walk at night. {'Waves roll in. ' * 6}"
    metro = ("The metro runs all night.", "It comes without a metro.", "The museum is closed.")[number % 3]
    return f"{beach}\n\nIn the centre there are shops and old houses of stone. {'Streets are narrow. ' * 6}{metro}"


def test_rows_of_one_id_are_no_passages(tmp_path):
    records = [Record(id, "t", text).beside_text() | {"document": "7"} for id, text in (("7", "a"), ("7 [2]", "b"))]
    write_records(tmp_path, records)
    assert not (tmp_path / PASSAGES).exists()
    assert [json.loads(line)["id"] for line in (tmp_path / "records.jsonl").read_text().splitlines()] == ["7", "7 [2]"]
