"""The files of evidence: any damage is noticed and told in one line, and rules of another version are."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from framework_fixtures import bag_of_words

from boolbert.boolean.clauses import split_clauses
from boolbert.cli import main
from boolbert.core.errors import RetrievalError
from boolbert.core.files import check_sum
from boolbert.data.own import OwnDocuments
from boolbert.retrieval.countries_index import countries
from boolbert.retrieval.evidence import RULES, Evidence, unit_length
from boolbert.retrieval.stores import index_documents
from boolbert.retrieval.words import words_of
from boolbert.search import BoolSearcher

# All are about one word, whose weights differ with the texts' lengths.
TEXTS = ["rain", "rain and wind", "rain, wind and snow and ice"]
ROWS = np.arange(len(TEXTS))


def encode(texts):
    return unit_length(bag_of_words(texts, lambda text: words_of(text) or ["nothing"]))


@pytest.fixture
def folder(tmp_path):
    Evidence.build(tmp_path / "evidence", TEXTS, encode, corpus="c", model="m", progress=False)
    read_all(tmp_path / "evidence")
    return tmp_path / "evidence"


def read_all(folder):
    """Every number that a search or a copy asks for."""
    evidence = Evidence(folder, "c", "m")
    words = {word for document in evidence.documents(ROWS) for word in document.words}
    return [evidence.words.weights(word) for word in sorted(words)]


def change(folder, name, action):
    """Save an array as what an action returns, or leaves."""
    array = np.load(folder / f"{name}.npy")
    changed = action(array)
    np.save(folder / f"{name}.npy", array if changed is None else changed)


def swap(array, one, other):
    assert (array[one] != array[other]).any()
    array[[one, other]] = array[[other, one]]


def swap_far(vectors):
    one = next(one for one in range(vectors.shape[1] - 31) if vectors[0, one] != vectors[0, one + 31])
    swap(vectors[0], one, one + 31)


# What a sum that weighs each number by its column, or not at all, does not notice.
SWAPS = {
    "two numbers 31 columns apart": ("vectors", swap_far),
    "the scales of two clauses": ("scales", lambda scales: swap(scales, 0, 2)),
    "two clauses' places": ("clauses", lambda clauses: swap(clauses, 0, 1)),
    "the vectors of two clauses": ("vectors", lambda vectors: swap(vectors, 0, 2)),
    "the weights of two documents": ("words/weights", lambda weights: swap(weights, 0, 2)),
    "two documents of a word": ("words/rows", lambda rows: swap(rows, 0, 1)),
}


@pytest.mark.parametrize("name", SWAPS)
def test_what_changes_places_is_noticed(folder, name):
    change(folder, *SWAPS[name])
    with pytest.raises(RetrievalError, match="was changed after it was written"):
        read_all(folder)


OTHERS = {
    "clauses": lambda array: array[:, :2],
    "scales": lambda array: array.astype(np.float32),
    "checks": lambda array: array[:-1],
    "vectors": lambda array: array[0],
    "words/checks": lambda array: array[:, :1],
    "words/counts": lambda array: array.astype(np.float64),
}


@pytest.mark.parametrize("name", OTHERS)
def test_an_array_of_another_shape_or_type_is_one_line(folder, name):
    change(folder, name, OTHERS[name])
    with pytest.raises(RetrievalError, match=rf"is damaged \({Path(name).name}\.npy holds .*; delete it, and index"):
        read_all(folder)


def test_long_vectors_are_no_false_alarm(tmp_path):
    def ones(texts):
        return np.ones((len(texts), 32_768), np.float32)

    Evidence.build(tmp_path / "evidence", TEXTS, ones, corpus="c", model="m", progress=False)
    assert Evidence(tmp_path / "evidence", "c", "m").best(ones(["a"]), ROWS)[0].min() > 0


def write_rules(folder, rules):
    file = folder / "evidence.json"
    content = {name: value for name, value in json.loads(file.read_text()).items() if name != "rules"}
    file.write_text(json.dumps(content if rules is None else {**content, "rules": rules}))


@pytest.mark.parametrize("rules", [None, RULES - 1, RULES + 1])
def test_evidence_by_other_rules_is_told(folder, rules):
    write_rules(folder, rules)
    with pytest.raises(RetrievalError, match=r"made by the rules of another version.*; index the documents again"):
        Evidence(folder, "c", "m")


def test_an_index_of_other_rules_is_made_anew_and_added_to_by_none(tmp_path, model, capsys):
    """What was calibrated on the old evidence goes with it."""
    write_texts(tmp_path / "texts.csv")
    index = ["index", "texts.csv", "--model", "model", "--output", "index"]
    assert main(index) == 0
    about = tmp_path / "index" / "index.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "line": {"weights": []}}))
    assert main(index) == 0
    assert "line" in json.loads(about.read_text())
    write_rules(tmp_path / "index" / "evidence", RULES - 1)
    ask = ["search", "rain", "--index", "index"]
    for command in (ask, [*index, "--add"]):
        capsys.readouterr()
        assert main(command) == 2
        assert "rules of another version of this package; index the documents again" in capsys.readouterr().err
    assert not (tmp_path / "index" / "store.json").exists()
    assert main([*ask, "--no-evidence"]) == 0
    assert main(index) == 0
    assert "line" not in json.loads(about.read_text())
    assert main(ask) == 0


def test_a_store_of_other_rules_is_neither_asked_nor_added_to(tmp_path, place, opened, model):
    write_texts(tmp_path / "texts.csv")
    store = opened(place)
    index_documents(OwnDocuments(tmp_path / "texts.csv"), store, model, progress=False)
    assert BoolSearcher(model, store).search("rain", 1)
    for folder in tmp_path.rglob("evidence"):
        write_rules(folder, RULES - 1)
    store.note(replace(store.about(), rules=RULES - 1))
    again = opened(place)
    with pytest.raises(RetrievalError, match="rules of another version"):
        BoolSearcher(model, again).search("rain", 1)
    with pytest.raises(RetrievalError, match="rules of another version"):
        index_documents(OwnDocuments(tmp_path / "texts.csv"), again, model, progress=False)


def write_texts(path):
    path.write_text("title,text\n" + "".join(f'{row},"{text}"\n' for row, text in enumerate(TEXTS)))


def test_the_rules_are_those_of_their_number():
    """If this fails, texts are taken apart in another way: raise RULES (retrieval/evidence.py), then write the new
    number and sum here. An index of the old rules would answer queries of the new ones wrongly, without a word."""
    denials = [path.read_text() for path in sorted(Path(__file__).with_name("denials").glob("*.tsv"))]
    texts = [document.text for document in countries()] + "".join(denials).splitlines()
    made = [[split_clauses(text), words_of(text, split_clauses(text), decades=True)] for text in texts]
    assert (RULES, check_sum(repr(made).encode())) == (3, 1293860546)
