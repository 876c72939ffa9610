"""Evidence: the files that say what documents say, clause by clause."""

import json
import math
import shutil

import numpy as np
import pytest
from framework_fixtures import bag_of_words

from boolbert.boolean.clauses import split_clauses
from boolbert.core.errors import RetrievalError
from boolbert.retrieval.evidence import Evidence, unit_length
from boolbert.retrieval.words import words_of

TEXTS = [
    "Down jacket. It has a warm hood, two pockets and a zip.",
    "Rain jacket. It comes without a hood. Two pockets.",
    "Down jacket with a zip from 1998. No pockets.",
    "A tent for two, with a zip.",
    "Wool hat. It keeps you warm.",
    "",
]
ROWS = np.arange(len(TEXTS))


def encode(texts):
    """A bag of words as a vector of length 1."""
    return unit_length(bag_of_words(texts, lambda text: words_of(text) or ["nothing"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "evidence"
    Evidence.build(path, TEXTS, encode, corpus="these", model="bag", progress=False)
    return path


@pytest.fixture(scope="module")
def evidence(folder):
    return Evidence(folder, "these", "bag")


@pytest.mark.parametrize(
    "words", [["zip"], ["zip", "pocket"], ["warm", "cheese"], ["cheese"], words_of("a wool hat that keeps warm")]
)
def test_words_are_scored_by_bm25_of_which_a_share_is_enough_where_they_are_few(evidence, words):
    counted = [words_of(text, split_clauses(text), decades=True) for text in TEXTS]
    mean = sum(map(len, counted)) / len(counted)
    rare = {
        word: math.log(1 + (100 - held + 0.5) / (held + 0.5))
        for word in words
        for held in [sum(word in own for own in counted)]
    }
    scores = [
        sum(rare[word] * own.count(word) / (own.count(word) + 1.5 * (0.25 + 0.75 * len(own) / mean)) for word in words)
        for own in counted
    ]
    slow = [score / (0.35 * sum(rare.values())) for score in scores]
    if len(words) <= 3:
        slow = [min(1.0, score) for score in slow]
    else:
        assert max(slow) > 1  # or this would show nothing
    np.testing.assert_allclose(evidence.words.scores(words), slow, atol=2e-3)  # float16


@pytest.mark.parametrize(("words", "row"), [(["hood"], 0), (["-hood"], 1), (words_of("the 1990s"), 2)])
def test_a_denied_word_is_another_word_and_a_year_is_found_by_its_decade(evidence, words, row):
    assert np.flatnonzero(evidence.words.scores(words)).tolist() == [row]


def test_the_nearest_clause_is_a_stretch_of_the_text(evidence):
    (asked,) = encode(["a warm hood"])
    found = evidence.nearest(asked, 0, denies=False)
    assert TEXTS[0][found.start : found.end] == "It has a warm hood, two pockets and a zip"
    assert evidence.nearest(asked, 5, denies=False) is None
    denied = evidence.nearest(asked, 1, denies=True)
    assert "without a hood" in TEXTS[1][denied.start : denied.end]


def test_cosines_count_from_those_of_unrelated_clauses(evidence):
    """0 for clauses of different documents that have little in common, 1 for equal ones, with any encoder."""
    clauses = [
        text[one.start : one.end]
        for text in TEXTS
        if text
        for one in [split_clauses(text)[len(split_clauses(text)) // 2]]
    ]
    vectors = encode(clauses)
    cosines = sorted(float(a @ b) for row, a in enumerate(vectors) for b in vectors[row + 1 :])
    assert cosines[2] < evidence.unrelated < cosines[3]  # a quarter of the ten lie below
    assert evidence.from_unrelated(np.array([evidence.unrelated, 1.0])).tolist() == [0.0, 1.0]


def test_evidence_of_other_documents_or_another_model_is_refused(folder):
    for known in (("others", "bag"), ("these", "another")):
        with pytest.raises(RetrievalError, match="belongs to other documents or another model"):
            Evidence(folder, *known)


OTHERS = ["Red car. It has no roof. Fast.", "Blue boat without sails."]
FILES = ("evidence.json", "vectors.npy", "scales.npy", "clauses.npy", "starts.npy")
FILES = (*FILES, *(f"words/{name}" for name in ("words.txt", "starts.npy", "rows.npy", "weights.npy")))
DAMAGE = {
    "empty": lambda path, others: path.write_bytes(b""),
    "cut": lambda path, others: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "garbage": lambda path, others: path.write_bytes(b"\xff\x00" * path.stat().st_size),
    "gone": lambda path, others: path.unlink(),
    "of another index": lambda path, others: shutil.copy(others, path),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_damage_is_one_line(folder, tmp_path, name, damage):
    Evidence.build(tmp_path / "others", OTHERS, encode, corpus="others", model="bag", progress=False)
    damaged = tmp_path / "evidence"
    shutil.copytree(folder, damaged)
    DAMAGE[damage](damaged / name, tmp_path / "others" / name)
    with pytest.raises(RetrievalError, match="evidence") as error:
        Evidence(damaged, "these", "bag")
    assert "\n" not in str(error.value)


NUMBERS = [name for name in FILES if name.endswith(".npy")]
NUMBERS += ["checks.npy", "words/counts.npy", "words/lengths.npy", "words/checks.npy"]


def read_all(folder):
    """Every number that a search or a copy asks for."""
    evidence = Evidence(folder, "these", "bag")
    evidence.best(encode(["a warm hood"]), ROWS)
    words = {word for document in evidence.documents(ROWS) for word in document.words}
    return [evidence.words.weights(word) for word in sorted(words)]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_changed_number_is_noticed(folder, tmp_path, name):
    shutil.copytree(folder, tmp_path / "evidence")
    path = tmp_path / "evidence" / name
    content = path.read_bytes()
    header = content.index(b"\n") + 1
    read_all(tmp_path / "evidence")
    for place in np.linspace(header, len(content) - 1, 12).astype(int):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(RetrievalError, match=r"evidence: (is damaged|was changed after it was written)"):
            read_all(tmp_path / "evidence")


def test_a_build_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        Evidence.build(tmp_path / "evidence", TEXTS, lambda texts: 1 / 0, corpus="c", model="m", progress=False)
    assert not list(tmp_path.iterdir())


def test_documents_without_a_word_have_evidence_too(tmp_path):
    Evidence.build(tmp_path / "evidence", ["", " "], encode, corpus="c", model="m", progress=False)
    affirming, denying = Evidence(tmp_path / "evidence", "c", "m").best(encode(["a warm hood"]), np.arange(2))
    assert affirming.tolist() == denying.tolist() == [[0.0, 0.0]]
    assert json.loads((tmp_path / "evidence" / "evidence.json").read_text())["documents"] == 2
