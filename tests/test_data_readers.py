"""Every reader on good files: plain and gzip, each layout it promises, rows as typed values."""

import gzip
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolbert.data import BoolQuestion, BoolQuestions, Corpus, DataError, Document, Query, Quest, Triplet, read_triplets
from boolbert.data.sources import open_source

DOCUMENTS = [{"title": "Alien", "text": "A film."}, {"title": "Dune", "text": "Ein Roman, größer als …"}]
QUERY = {
    "query": "films that are no comedies",
    "docs": ["Alien"],
    "original_query": "<mark>films</mark> that are not <mark>comedies</mark>",
    "scores": None,
    "metadata": {"template": "_ that are not _", "domain": "films", "atoms": ["film", "comedy"], "fluency": [True]},
}


def write(path, rows):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
@pytest.mark.parametrize("dev", ["dev", "val", "validation"])
def test_quest_folder(tmp_path, ending, dev):
    write(tmp_path / f"documents{ending}", DOCUMENTS)
    write(tmp_path / f"train{ending}", [QUERY, {"query": "both", "docs": ["Dune", "Alien"]}])
    write(tmp_path / f"{dev}{ending}", [QUERY])
    write(tmp_path / "notes.jsonl", [{"anything": 1}])
    atoms = json.dumps({"film": [0], "comedy": []})
    (tmp_path / "atoms.json").write_text(atoms)
    quest = Quest(tmp_path)
    assert quest.splits == ["train", dev]
    assert list(quest.documents()) == list(quest.corpus) == [Document("Alien", "A film."), Document(**DOCUMENTS[1])]
    first, second = quest.queries("train")
    assert first == Query(
        query=QUERY["query"],
        docs=("Alien",),
        original_query=QUERY["original_query"],
        template="_ that are not _",
        domain="films",
        atoms=("film", "comedy"),
    )
    assert first.where == f"{tmp_path}/train{ending}:1"
    assert (first.operators, second.operators) == (("not",), None)
    assert quest.queries("dev") == [first]
    assert [rows.tolist() for rows in quest.gold("train")] == [[0], [0, 1]]
    assert {name: rows.tolist() for name, rows in quest.atoms.items()} == {"film": [0], "comedy": []}


@pytest.mark.parametrize("whole_folder", [True, False])
@pytest.mark.parametrize("array", [True, False])
def test_boolquestions_folder(tmp_path, whole_folder, array):
    question = {
        "qid": 12,
        "question": "which cats do not purr",
        "question_type": "not",
        "positive_ctxs": [{"passage_id": 7, "title": "", "text": "..."}],
        "negative_ctxs": [{"passage_id": "8"}, {"passage_id": "9"}],
    }
    folder = tmp_path / "MSMARCO"
    write(folder / "corpus.jsonl", [{"docid": str(i), "doc": f"passage {i}"} for i in range(6, 10)])
    if array:
        (folder / "eval.json").write_text(json.dumps([question], indent=2))
    else:
        write(folder / "eval.json", [question])
    data = BoolQuestions(tmp_path if whole_folder else folder)
    questions = data.questions("eval")
    assert questions == [BoolQuestion("12", "which cats do not purr", "not", ("7",), ("8", "9"))]
    assert data.corpus[1] == Document("7", "passage 7")
    assert data.gold(questions)[0].tolist() == [1]
    assert data.negatives(questions)[0].tolist() == [2, 3]


def test_boolquestions_with_titles(tmp_path):
    write(tmp_path / "NaturalQuestions" / "corpus.jsonl", [{"docid": 1, "title": "Cat", "doc": "It purrs."}])
    data = BoolQuestions(tmp_path, subset="NaturalQuestions")
    assert list(data.passages()) == [Document("1", "Cat [SEP] It purrs.")]
    with pytest.raises(ValueError, match="subset must be one of"):
        BoolQuestions(tmp_path, subset="msmarco")


def test_setbert_files_tell_the_operator(tmp_path):
    row = {"G": "cats and dogs", "P": ["dogs and cats", "both"], "N": ["cats", "dogs", "birds"]}
    for name in ("not", "or", "and"):
        write(tmp_path / f"{name}.jsonl", [row])
    write(tmp_path / "train.jsonl", [row, {**row, "operator": "or"}])
    triplets = list(read_triplets(tmp_path))
    assert [triplet.operator for triplet in triplets] == ["and", "or", "not", None, "or"]
    assert triplets[0] == Triplet("cats and dogs", ("dogs and cats", "both"), ("cats", "dogs", "birds"), "and")
    assert [t.operator for t in read_triplets(tmp_path / "and.jsonl")] == ["and"]


def test_embedded_data_is_the_default():
    quest = Quest()
    assert quest.splits == ["train", "dev", "test"]
    assert quest.gold("train").counts.tolist() == [len(query.docs) for query in quest.queries("train")]
    data = BoolQuestions()
    questions = data.questions("eval")
    assert {question.operator for question in questions} == {"and", "or", "not"}
    gold, negatives = data.gold(questions), data.negatives(questions)
    for index, question in enumerate(questions):
        assert len(gold[index]) == len(question.positives)
        assert len(negatives[index]) == len(question.negatives)
        assert set(gold[index]).isdisjoint(negatives[index])
        assert len(negatives[index]) or question.operator == "or"
    operators = [triplet.operator for triplet in read_triplets()]
    assert operators == ["and"] * 2000 + ["or"] * 2000 + ["not"] * 2000


def test_documents_stream(tmp_path):
    (tmp_path / "documents.jsonl").write_text('{"title": "Alien", "text": ""}\nbroken\n')
    documents = Quest(tmp_path).documents()
    assert next(documents) == Document("Alien", "")
    assert Quest(tmp_path).atoms is None
    with pytest.raises(DataError, match=r"documents.jsonl:2: broken JSON"):
        next(documents)


def test_progress_is_shown_unless_told_otherwise(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("boolbert.core.progress.FIRST_LINE", 0)
    write(tmp_path / "documents.jsonl", DOCUMENTS * 1000)
    shown = {}
    for terminal in (True, False):
        for progress in (True, False):
            monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal)
            assert len(list(Quest(tmp_path, progress=progress).documents())) == 2000
            shown[terminal, progress] = "documents.jsonl" in capsys.readouterr().err
    assert shown == {(True, True): True, (True, False): False, (False, True): True, (False, False): False}


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    (tmp_path / "documents.jsonl").write_bytes(b'\xef\xbb\xbf{"title": "Alien", "text": "A film."}\r\n\r\n')
    assert list(Quest(tmp_path).documents()) == [Document("Alien", "A film.")]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8))
def test_corpus_gives_back_any_text(texts):
    corpus = Corpus(Document(f"title {row}", text) for row, text in enumerate(texts))
    assert [document.text for document in corpus] == corpus.texts() == texts
    assert corpus.texts(range(len(texts))[::-1]) == texts[::-1]
    assert [corpus.rows(title) for title in corpus.titles] == [[row] for row in range(len(texts))]


def test_corpus_travels_to_worker_processes():
    corpus = pickle.loads(pickle.dumps(Corpus([Document("Alien", "ä film"), Document("Dune", "a novel")])))
    assert corpus[-1] == Document("Dune", "a novel")
    assert corpus.rows("Nothing") == []
    with pytest.raises(IndexError):
        corpus[2]


def test_a_place_that_is_nothing_names_both_ways(tmp_path):
    with pytest.raises(DataError, match=r"no such file or folder, nor can it be a Hub data set id \(owner/name\)"):
        open_source(tmp_path / "nowhere")
    (tmp_path / "data.xml").write_text("<a/>")
    with pytest.raises(DataError, match=r"unknown file type; expected .jsonl or .json"):
        open_source(tmp_path / "data.xml")
